/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SDP Transport Interface, in user space: libweftti.so.0.
 *
 * Types, values and the operations vector are those of the Transport Interface's own sdp_ti.h of
 * 2002, SYNOPSIS by SYNOPSIS.  sdp_ti(3) explains them, and how the document's gaps and
 * contradictions are resolved; <weft/ti.h> has the extensions.
 *
 * Conventions of all operations, which their own comments do not repeat:
 * - They may be called from any thread, callbacks included, but for what <weft/ti.h> names as
 *   blocking; a handle that is stale, foreign, NULL or of another kind is answered by a status.
 * - When they do not return TI_SUCCESS (or TI_PENDING), nothing has happened and OUT parameters are
 *   as they were, handles apart: those are NULL.
 */
#ifndef SDP_TI_H
#define SDP_TI_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the kernel gave ---- */

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

/* Define these before including this header if the program has such types of its own. */
#ifndef TI_HAVE_BOOLEAN_T
#define TI_HAVE_BOOLEAN_T
typedef int boolean_t;
#endif
#ifndef TI_HAVE_U32
#define TI_HAVE_U32
typedef uint32_t u32;
#endif
#ifndef TI_HAVE_UNCHAR
#define TI_HAVE_UNCHAR
typedef unsigned char unchar;
#endif

/*
 * A link device; what events point to is valid until the device's TI_EVENT_NETDEV_DOWN, and changes
 * with its events.
 */
#ifndef TI_HAVE_NET_DEVICE
#define TI_HAVE_NET_DEVICE
struct net_device {
	char name[16];              /* NUL-terminated */
	int ifindex;                /* as if_nametoindex() has it */
	unsigned int flags;         /* IFF_* */
	unsigned int mtu;           /* bytes */
	unsigned short type;        /* ARPHRD_* */
	unsigned char addr_len;     /* bytes used of dev_addr */
	unsigned char dev_addr[32]; /* the hardware's address */
};
#endif

/* ---- opaque handles ---- */

typedef struct net_device net_device_t;
typedef struct _ti_handle *ti_handle_t;
typedef struct _ti_cq_handle *ti_cq_handle_t;
typedef struct _ti_endpoint_handle *ti_endpoint_handle_t;
typedef struct _ti_pd_handle *ti_pd_handle_t;
typedef struct _ti_conn_handle *ti_conn_handle_t;
typedef struct _ti_mem_handle *ti_mem_handle_t;
typedef struct _ti_res_pool_handle *ti_res_pool_handle_t;
typedef struct _ti_mem_win_handle *ti_mem_win_handle_t; /* listed; no operation uses it */

/* ---- status codes ---- */

typedef enum {
	TI_NO_STATUS = -1,
	TI_SUCCESS = 0,
	TI_PENDING,
	TI_INSUFFICIENT_RESOURCES,
	TI_INSUFFICIENT_MEMORY,
	TI_INVALID_PARAMETER,
	TI_INVALID_PERMISSION,
	TI_INVALID_ADDRESS,
	TI_INVALID_HANDLE,
	TI_INVALID_SETTING,
	TI_INVALID_OPERATION,
	TI_UNSUPPORTED,
	TI_RESOURCE_BUSY,
	TI_REJECTED,
	TI_CANCELED,
	TI_TIMEOUT,
	TI_CQ_ERROR,
	TI_CQ_OVERRUN_ERROR,
	TI_NOT_FOUND,
	TI_ERROR
} ti_status_t;

/* Names that the document uses and does not define. */
#define TI_FAILURE           TI_ERROR
#define TI_FERROR            TI_ERROR
#define FSUCCESS             TI_SUCCESS
#define TI_INVALID_STATE     TI_INVALID_OPERATION
#define TI_CANCELLED         TI_CANCELED
#define TI_CQ_OVERRUN        TI_CQ_OVERRUN_ERROR
#define TI_INVLAID_HANDLE    TI_INVALID_HANDLE
#define TI_INVLAID_PARAMETER TI_INVALID_PARAMETER

typedef struct _ti_err_rec {
	ti_status_t code;
	void *context;
} ti_err_rec_t;

/* ---- events: sdp_ti(3) tells which message of the kernel raises each ---- */

typedef enum {
	TI_EVENT_NONE = 0,
	TI_EVENT_NETDEV_ONLINE,
	TI_EVENT_NETDEV_UP,
	TI_EVENT_NETDEV_DOWN,
	TI_EVENT_NETDEV_REBOOT,
	TI_EVENT_NETDEV_CHANGE,
	TI_EVENT_NETDEV_REGISTER,
	TI_EVENT_NETDEV_UNREGISTER,
	TI_EVENT_NETDEV_CHANGEMTU,
	TI_EVENT_NETDEV_CHANGEADDR,
	TI_EVENT_NETDEV_GOING_DOWN,
	TI_EVENT_NETDEV_CHANGENAME,
	TI_EVENT_SYS_DOWN,
	TI_EVENT_SYS_RESTART,
	TI_EVENT_SYS_HALT,
	TI_EVENT_SYS_POWER_OFF,
	TI_EVENT_RTF_UP,
	TI_EVENT_RTF_GATEWAY,
	TI_EVENT_RTF_HOST,
	TI_EVENT_RTF_REINSTATE,
	TI_EVENT_RTF_DYNAMIC,
	TI_EVENT_RTF_MODIFIED,
	TI_EVENT_RTF_MTU,
	TI_EVENT_RTF_MSS,
	TI_EVENT_RTF_WINDOW,
	TI_EVENT_RTF_IRTT,
	TI_EVENT_RTF_REJECT,
	TI_EVENT_RTF_DEFAULT,
	TI_EVENT_RTF_ALLONLINK,
	TI_EVENT_RTF_ADDRCONF,
	TI_EVENT_RTF_NONEXTHOP,
	TI_EVENT_RTF_EXPIRES,
	TI_EVENT_RTF_CACHE,
	TI_EVENT_RTF_FLOW,
	TI_EVENT_RTF_POLICY,
	TI_EVENT_RTF_LOCAL,
	TI_EVENT_RTMSG_NEWDEVICE,
	TI_EVENT_RTMSG_DELDEVICE,
	TI_EVENT_RTMSG_NEWROUTE,
	TI_EVENT_RTMSG_DELROUTE,
	TI_EVENT_TI_SHUTDOWN,   /* data: char *, the transport's name */
	TI_EVENT_PROTO_SHUTDOWN /* data: char *, the reason */
} ti_event_t;

#define TI_NETDEV_ONLINE TI_EVENT_NETDEV_ONLINE

/* What data and its lifetime are depends on the event; valid during the call unless said so. */
typedef void (*ti_event_cb_t)(
	IN const ti_event_t event, IN const void *p_data, IN const void *p_context);

/* ---- addresses ---- */

typedef enum { TI_ADDR_IPV4, TI_ADDR_IPV6 } ti_addr_fmt_t;

/* In network byte order, unless TI_SET_ADDR_ORDER of <weft/ti.h> says otherwise. */
typedef struct _ti_addr_ {
	union {
		struct in6_addr in6;
		struct in_addr in4;
	} inet_u;
#define ipv4_addr    inet_u.in4.s_addr
#define ipv6_saddr32 inet_u.in6.s6_addr32
	ti_addr_fmt_t IP_addr_type;
} ti_inet_addr_t;

/* clang-format off */
#define SET_IPV4_ADDR(w,h) w.ipv4_addr = (h); w.IP_addr_type=TI_ADDR_IPV4
/* clang-format on */
#define ip4_addr ipv4_addr
#define in_u     inet_u

typedef uint16_t ti_port_t; /* in host order */

/* ---- constants of operations ---- */

typedef enum { TI_GET_CONN_PROFILE } ti_ioctl_t;

typedef enum { TI_ATOMIC_COMPARE_SWAP, TI_ATOMIC_FETCH_ADD } ti_atomic_op_t;

typedef enum { TI_MEM_READ = 0, TI_MEM_WRITE, TI_MEM_READ_WRITE } ti_access_t;

typedef enum { TI_RES_POOL_MSG, TI_RES_POOL_RDMA } ti_res_pool_type_t;

/* Named by the document, defined nowhere in it. */
typedef enum {
	TI_DBG_OFF,     /* fatal messages */
	TI_DBG_STD,     /* errors too */
	TI_DBG_VERBOSE, /* warnings and information too */
	TI_DBG_DEBUG    /* all: the entry and exit of operations too */
} ti_debug_level_t;

/* ---- data ---- */

typedef uint32_t ti_region_key_t;

typedef struct _ti_rdma_desc {
	uint64_t vaddr;
	ti_region_key_t rkey;
} ti_rdma_desc_t;

typedef struct _local_data_desc {
	void *vaddr;
	ti_region_key_t lkey;
	uint64_t byte_count;
} ti_local_data_desc_t;

typedef uint32_t ti_msg_opt_t;
#define TI_OPT_IMMEDIATE 0x00000001
#define TI_OPT_FENCE     0x00000002
#define TI_OPT_SIGNALED  0x00000004
#define TI_OPT_SOLICITED 0x00000008
#define AT_OPT_SIGNALED  TI_OPT_SIGNALED

/*
 * One transfer.  Elements come from pools alone.  From a successful post on they are the
 * library's, until they come back through a callback or poll_cq().
 */
typedef struct _ti_data_element {
	struct _ti_data_element *p_next_msg;
	uint32_t num_io_bufs;
	union {
		ti_local_data_desc_t *ldata;
		ti_rdma_desc_t *rdata;
	} io_buffer_array;
#define local_data_desc io_buffer_array.ldata
#define rdma_data_desc  io_buffer_array.rdata
	ti_res_pool_type_t pool_type;
	void *p_context;
	ti_msg_opt_t msg_opt;
	uint32_t oob_data_len; /* 0 to 4 */
	uint32_t oob_data;     /* its first oob_data_len bytes */
	ti_status_t status;
	uint32_t recv_byte_count;
	uint32_t ud_offset;
	boolean_t iodone;
	void *otd; /* the library's */
} ti_data_element_t;

/* ---- connections ---- */

typedef struct _ti_conn_request {
	ti_conn_handle_t conn_handle;
	ti_status_t status;
	uint16_t caller;  /* 0 == connect(), 1 == listen() */
	uint16_t cb_type; /* CN_{REQUEST,REPLY,REJECT,MRA} */
	void *context;    /* from conn_info->context */
	uint32_t private_data_len;
	void *private_data;
	uint16_t private_data_offset;
	uint16_t private_data_offset_len;
} ti_conn_request_t;

#define CN_REQUEST 0x3232
#define CN_REPLY   0x3233
#define CN_REJECT  0x3234
#define CN_MRA     0x3235

typedef void (*ti_conn_req_cb_t)(ti_conn_request_t *p_conn_req);

typedef struct _ti_conn_info {
	ti_endpoint_handle_t src_ep;
	ti_endpoint_handle_t dst_ep;
	ti_pd_handle_t pdh;
	ti_cq_handle_t send_cqh;
	ti_cq_handle_t recv_cqh;
	void *private_data;
	uint32_t private_data_len;
	uint16_t private_data_offset;
	uint16_t private_data_offset_len;
	ti_conn_req_cb_t conn_request_cb;
	void *context;
} ti_conn_info_t;

/* 0 in a depth, size or timeout: the library's default (sdp_ti(3)). */
typedef struct _ti_conn_attr {
	uint32_t connect_request_timeout; /* ms; 0xFFFFFFFF: never */
	uint32_t connect_request_retries;
	uint32_t max_transfer_depth;
	uint32_t max_transfer_buffers;
	uint32_t max_transfer_size;
	uint32_t max_recv_depth;
	uint32_t max_recv_buffers;
	uint32_t max_recv_size;
	uint32_t max_rdma_depth;
	uint32_t max_rdma_size;
	uint32_t max_send_retries;
	boolean_t reliable;
	boolean_t msg_flow_control;
	boolean_t auto_path_migration;
	boolean_t auto_cq_rearm;
} ti_conn_attr_t;

typedef struct _ti_pool_response {
	void *p_context1;
	void *p_context2;
	ti_data_element_t *p_element_list;
	uint32_t element_count;
	ti_status_t status;
} ti_pool_response_t;

/* ---- callbacks ---- */

/* de_list is NULL unless the connection's auto_cq_rearm is TRUE.  Must not block. */
typedef void (*ti_xfer_cb_t)(ti_cq_handle_t cq_handle, ti_data_element_t *de_list);
typedef void (*ti_context_cb_t)(void *p_context);
typedef void (*ti_err_cb_t)(ti_err_rec_t *p_err_rec);
typedef void (*ti_res_pool_cb_t)(ti_pool_response_t *p_resp);

typedef struct _ti_comp_info {
	ti_cq_handle_t h_send_cq;
	ti_cq_handle_t h_recv_cq;
	ti_xfer_cb_t pfn_send_cb;
	ti_xfer_cb_t pfn_recv_cb;
	ti_xfer_cb_t pfn_rdma_cb;
	ti_err_cb_t pfn_err_cb;
	void *p_err_context;
} ti_comp_info_t;

/* ---- the operations vector: no entry is NULL ---- */

typedef struct _ti_ops {
	char *transport_name;
	char *link_dev_name;
	char *(*ti_status_2_str)(IN ti_status_t status);
	ti_status_t (*events_register)(IN const void *p_Context, IN ti_event_cb_t Event_callback);
	ti_status_t (*events_deregister)(IN const void *p_Context, IN ti_event_cb_t Event_callback);
	ti_status_t (*create_ti)(OUT ti_handle_t *ph_ti);
	ti_status_t (*destroy_ti)(
		IN ti_handle_t h_ti, IN ti_context_cb_t pfn_cb, IN void *p_context);
	ti_status_t (*debug_svc)(IN ti_handle_t h_ti, IN ti_debug_level_t debug_level);
	ti_status_t (*create_endpoint)(IN ti_handle_t h_ti, IN ti_inet_addr_t *p_addr,
		IN ti_port_t port, OUT ti_endpoint_handle_t *ph_ep);
	ti_status_t (*destroy_endpoint)(IN ti_endpoint_handle_t h_ep);
	ti_status_t (*create_pd)(
		IN ti_handle_t h_ti, IN ti_endpoint_handle_t h_local_ep, OUT ti_pd_handle_t *ph_pd);
	ti_status_t (*destroy_pd)(IN ti_pd_handle_t h_pd);
	ti_status_t (*create_cq)(IN ti_handle_t h_ti, IN ti_pd_handle_t h_pd,
		IN uint32_t max_cq_entries, OUT ti_cq_handle_t *ph_cq);
	ti_status_t (*poll_cq)(IN ti_cq_handle_t h_cq, OUT ti_data_element_t **p_list);
	ti_status_t (*rearm_cq)(IN ti_cq_handle_t h_cq);
	ti_status_t (*destroy_cq)(IN ti_cq_handle_t h_cq);
	ti_status_t (*connect)(IN ti_handle_t h_ti, IN ti_conn_attr_t *p_conn_attr,
		IN ti_conn_info_t *p_conn_info, OUT ti_conn_request_t *p_conn_req,
		OUT ti_conn_handle_t *ph_conn);
	ti_status_t (*accept)(IN ti_conn_request_t *p_conn_req, IN uint32_t max_rdma_size,
		IN ti_comp_info_t *p_comp, IN ti_data_element_t *p_recv_mlist);
	ti_status_t (*reject)(IN ti_conn_request_t *p_conn_req);
	ti_status_t (*listen)(IN ti_handle_t h_ti, IN ti_conn_attr_t *p_conn_attr,
		IN ti_conn_info_t *p_conn_info, OUT ti_conn_request_t *p_conn_req,
		OUT ti_conn_handle_t *ph_conn);
	ti_status_t (*disconnect)(
		IN ti_conn_handle_t h_conn, IN ti_context_cb_t pfn_cb, IN void *p_context);
	ti_status_t (*reg_virt_mem)(IN ti_handle_t h_ti, IN ti_pd_handle_t h_pd, IN void *p_vaddr,
		IN uint32_t byte_count, IN ti_access_t access_rights,
		OUT ti_rdma_desc_t *p_rdma_desc, OUT ti_mem_handle_t *ph_vmem);
	ti_status_t (*reg_phys_mem)(IN ti_handle_t h_ti, IN ti_pd_handle_t h_pd,
		IN uint64_t *p_phys_page_addr_array, IN uint32_t num_pages,
		IN ti_access_t access_rights, IN OUT ti_rdma_desc_t *p_rdma_desc,
		OUT ti_mem_handle_t *ph_pmem);
	ti_status_t (*dereg_mem)(IN ti_mem_handle_t h_mem);
	ti_status_t (*res_pool_create)(IN ti_handle_t h_ti, IN ti_res_pool_type_t pool_type,
		IN uint32_t element_cnt, IN uint32_t bufs_per_element, IN uint32_t *buf_size_array,
		IN uint32_t context_size, OUT ti_res_pool_handle_t *ph_pool);
	ti_status_t (*res_pool_destroy)(IN ti_res_pool_handle_t h_pool);
	ti_status_t (*res_pool_get)(IN ti_res_pool_handle_t h_pool, IN uint32_t element_count,
		IN boolean_t partial_allocation_OK, IN ti_res_pool_cb_t res_cb, IN void *p_context1,
		IN void *p_context2, IN OUT ti_pool_response_t *p_res_pool_resp);
	ti_status_t (*res_pool_put)(IN ti_res_pool_handle_t h_pool, IN ti_data_element_t *p_delist);
	ti_status_t (*msg_send)(IN ti_conn_handle_t h_conn, IN ti_data_element_t *p_delist);
	ti_status_t (*msg_recv)(IN ti_conn_handle_t h_conn, IN ti_data_element_t *p_delist);
	ti_status_t (*rdma_read)(IN ti_conn_handle_t h_conn, IN ti_data_element_t *p_melist);
	ti_status_t (*rdma_write)(IN ti_conn_handle_t h_conn, IN ti_data_element_t *p_melist);
	ti_status_t (*rdma_read_send)(IN ti_conn_handle_t h_conn,
		IN ti_data_element_t *p_rdma_read_list, IN ti_data_element_t *p_msg);
	ti_status_t (*rdma_write_send)(IN ti_conn_handle_t h_conn,
		IN ti_data_element_t *p_rdma_write_list, IN ti_data_element_t *p_msg);
	ti_status_t (*atomic_op)(IN ti_conn_handle_t h_conn, IN ti_atomic_op_t operation,
		IN OUT ti_data_element_t *p_data);
	ti_status_t (*io_ctl)(IN ti_handle_t h_ti, IN ti_ioctl_t cmd, IN OUT uint32_t *p_bytes,
		IN OUT void *p_data);
} ti_ops_t;

/* Other names that the document has for members of the vector, and for the vector. */
#define ti_opts_t            ti_ops_t
#define destroy_ti_svc       destroy_ti
#define dereg_phys_mem       dereg_mem
#define ti_events_register   events_register
#define ti_events_deregister events_deregister
#define ti_events_enable     events_register
#define tp_enables_events    events_register
#define link_event_register  events_register

/* ---- data of events ---- */

typedef struct _transport_desc {
	net_device_t *dev;
	ti_inet_addr_t *IP_addr;                 /* NULL: the device has none */
	ti_inet_addr_t *IP_netmask;              /* NULL with IP_addr */
	ti_inet_addr_t *first_hop_IP_route_addr; /* NULL: no route has a gateway */
} ti_transport_desc_t;

typedef struct _inet_route_event_ {
	ti_inet_addr_t
		ipaddr;    /* the gateway for TI_EVENT_RTF_GATEWAY, else where the route leads */
	net_device_t *dev; /* NULL: the route has none, or several */
} ti_inet_route_event_t;

/* ---- functions ---- */

/*
 * What a protocol provider has and the library calls: when it is loaded, and at the end with the
 * same arguments.  The provider tells of its own end through ti_event_notify, with
 * TI_EVENT_PROTO_SHUTDOWN.  For providers loaded later: ti_provider_add() of <weft/ti.h>.
 */
#ifdef __GNUC__ /* the library finds them also in programs that hide what they define */
#pragma GCC visibility push(default)
#endif
void SDP_register_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify);
void SDP_deregister_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify);
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

/* The text of a status, such as "Invalid Handle"; never NULL; not to be written to. */
char *ti_status_2_str(IN const ti_status_t status);

#ifdef __cplusplus
}
#endif

#endif
