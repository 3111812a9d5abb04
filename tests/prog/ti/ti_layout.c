// SPDX-License-Identifier: BSD-3-Clause
/* The document's types: values, order and offsets of members, and strings. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/ti.h>

#include "tests/lib/check.h"
#include "ti_exports.h"

/* Members in the document's order, each where the compiler puts it behind the one before. */
#define AFTER(type, before, member)                                                                \
	_Static_assert(                                                                            \
		offsetof(type, member) >= offsetof(type, before) + sizeof(((type *)0)->before) &&  \
			offsetof(type, member) - offsetof(type, before) -                          \
					sizeof(((type *)0)->before) <                              \
				8,                                                                 \
		#type "." #member)

_Static_assert(TI_NO_STATUS == -1 && TI_SUCCESS == 0 && TI_PENDING == 1 && TI_INVALID_HANDLE == 7 &&
		       TI_RESOURCE_BUSY == 11 && TI_ERROR == 18,
	"statuses");
_Static_assert(TI_EVENT_NETDEV_ONLINE == 1 && TI_EVENT_SYS_DOWN == 12 && TI_EVENT_RTF_UP == 16 &&
		       TI_EVENT_RTF_DEFAULT == 27 && TI_EVENT_RTMSG_NEWDEVICE == 36 &&
		       TI_EVENT_PROTO_SHUTDOWN == 41,
	"events");
_Static_assert(offsetof(ti_rdma_desc_t, rkey) == 8 && sizeof(ti_rdma_desc_t) == 16, "rdma");
_Static_assert(
	sizeof(ti_inet_addr_t) == 20 && offsetof(ti_inet_addr_t, IP_addr_type) == 16, "addr");
#if UINTPTR_MAX > UINT32_MAX
_Static_assert(offsetof(ti_local_data_desc_t, lkey) == 8 &&
		       offsetof(ti_local_data_desc_t, byte_count) == 16,
	"local");
_Static_assert(offsetof(ti_data_element_t, io_buffer_array) == 16 &&
		       offsetof(ti_data_element_t, pool_type) == 24 &&
		       offsetof(ti_data_element_t, p_context) == 32 &&
		       offsetof(ti_data_element_t, msg_opt) == 40 &&
		       offsetof(ti_data_element_t, status) == 52 &&
		       offsetof(ti_data_element_t, otd) == 72 && sizeof(ti_data_element_t) == 80,
	"element");
_Static_assert(offsetof(ti_conn_request_t, caller) == 12 &&
		       offsetof(ti_conn_request_t, context) == 16 &&
		       offsetof(ti_conn_request_t, private_data) == 32 &&
		       offsetof(ti_conn_request_t, private_data_offset_len) == 42,
	"request");
_Static_assert(offsetof(ti_conn_info_t, private_data) == 40 &&
		       offsetof(ti_conn_info_t, conn_request_cb) == 56 &&
		       sizeof(ti_conn_info_t) == 72,
	"info");
_Static_assert(offsetof(ti_conn_attr_t, reliable) == 44 && sizeof(ti_conn_attr_t) == 60, "attr");
_Static_assert(sizeof(ti_comp_info_t) == 56 && sizeof(ti_pool_response_t) == 32, "comp");
_Static_assert(sizeof(ti_transport_desc_t) == 32 && offsetof(ti_inet_route_event_t, dev) == 24,
	"data of events");
_Static_assert(sizeof(ti_ops_t) == 36 * sizeof(void *), "the vector");
#endif
AFTER(ti_conn_attr_t, connect_request_timeout, connect_request_retries);
AFTER(ti_conn_attr_t, connect_request_retries, max_transfer_depth);
AFTER(ti_conn_attr_t, max_transfer_depth, max_transfer_buffers);
AFTER(ti_conn_attr_t, max_transfer_buffers, max_transfer_size);
AFTER(ti_conn_attr_t, max_transfer_size, max_recv_depth);
AFTER(ti_conn_attr_t, max_recv_depth, max_recv_buffers);
AFTER(ti_conn_attr_t, max_recv_buffers, max_recv_size);
AFTER(ti_conn_attr_t, max_recv_size, max_rdma_depth);
AFTER(ti_conn_attr_t, max_rdma_depth, max_rdma_size);
AFTER(ti_conn_attr_t, max_rdma_size, max_send_retries);
AFTER(ti_conn_attr_t, max_send_retries, reliable);
AFTER(ti_conn_attr_t, reliable, msg_flow_control);
AFTER(ti_conn_attr_t, msg_flow_control, auto_path_migration);
AFTER(ti_conn_attr_t, auto_path_migration, auto_cq_rearm);
AFTER(ti_ops_t, transport_name, link_dev_name);
AFTER(ti_ops_t, link_dev_name, ti_status_2_str);
AFTER(ti_ops_t, ti_status_2_str, events_register);
AFTER(ti_ops_t, events_deregister, create_ti);
AFTER(ti_ops_t, debug_svc, create_endpoint);
AFTER(ti_ops_t, destroy_cq, connect);
AFTER(ti_ops_t, connect, accept);
AFTER(ti_ops_t, reject, listen);
AFTER(ti_ops_t, listen, disconnect);
AFTER(ti_ops_t, dereg_mem, res_pool_create);
AFTER(ti_ops_t, res_pool_put, msg_send);
AFTER(ti_ops_t, msg_recv, rdma_read);
AFTER(ti_ops_t, rdma_write, rdma_read_send);
AFTER(ti_ops_t, rdma_write_send, atomic_op);
AFTER(ti_ops_t, atomic_op, io_ctl);

/* ---- a provider that is linked in ---- */

static ti_ops_t *registered;
static ti_event_cb_t notify;
static int told = -1; /* where the end is told */

void SDP_register_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify)
{
	registered = ops;
	notify = ti_event_notify;
}

void SDP_deregister_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify)
{
	if (told >= 0 && ops == registered && ti_event_notify == notify && write(told, "x", 1) != 1)
		die("write");
}

/* ---- others ---- */

static int later_adds, later_removes;

static void later_add(ti_ops_t *ops, ti_event_cb_t n)
{
	later_adds += ops == registered && n == notify;
}

static void later_remove(ti_ops_t *ops, ti_event_cb_t n)
{
	later_removes += ops == registered && n == notify;
}

static void providers(void)
{
	CHECK(registered == ti_ops_get());
	CHECK(notify);
	CHECK_EQ(ti_provider_add(NULL, later_remove), TI_INVALID_PARAMETER);
	CHECK_EQ(ti_provider_add(later_add, later_remove), TI_SUCCESS);
	CHECK_EQ(later_adds, 1);
	CHECK_EQ(ti_provider_add(later_add, later_remove), TI_INVALID_PARAMETER);
	CHECK_EQ(ti_provider_remove(later_add, NULL), TI_NOT_FOUND);
	CHECK_EQ(ti_provider_remove(later_add, later_remove), TI_SUCCESS);
	CHECK_EQ(later_removes, 1);
	CHECK_EQ(ti_provider_remove(later_add, later_remove), TI_NOT_FOUND);
}

/* Who registered for events is told first. */
static void shut_down(const ti_event_t event, const void *data, const void *context)
{
	if (event == TI_EVENT_TI_SHUTDOWN && context == &told && !strcmp(data, "Weft") &&
		write(told, "e", 1) != 1)
		die("write");
}

/* The linked one is told when the process ends. */
static void end(void)
{
	int ends[2], status;
	char c[2] = "";

	if (pipe(ends))
		die("pipe");
	if (!fork()) {
		told = ends[1];
		CHECK_EQ(registered->events_register(&told, shut_down), TI_SUCCESS);
		exit(0);
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], &c[0], 1), 1);
	CHECK_EQ(c[0], 'e');
	CHECK_EQ(read(ends[0], &c[1], 1), 1);
	CHECK_EQ(c[1], 'x');
	wait(&status);
	close(ends[0]);
}

static void strings(void)
{
	unchar addr[4] = {255, 255, 255, 255};
	struct net_device dev = {.name = "eth7"};
	ti_inet_addr_t ip = {.IP_addr_type = TI_ADDR_IPV4};
	ti_transport_desc_t desc = {.dev = &dev, .IP_addr = &ip};
	char buf[64], short_buf[8];

	CHECK(!strcmp(ti_status_2_str(TI_INVALID_HANDLE), "Invalid Handle"));
	CHECK(!strcmp(registered->ti_status_2_str(TI_NO_STATUS), "No Status"));
	CHECK(!strcmp(ti_status_to_str(TI_ERROR), "Error"));
	CHECK(!strcmp(ti_status_to_str((ti_status_t)99), "Unknown Status"));
	CHECK(!strcmp(mk_inet_addr_p(addr, buf), "255.255.255.255"));
	for (int e = TI_EVENT_NONE; e <= TI_EVENT_PROTO_SHUTDOWN; e++)
		CHECK(strlen(ti_event_to_str(e, NULL, buf, sizeof buf)) > 2);
	CHECK(!strcmp(ti_event_to_str(TI_EVENT_NETDEV_ONLINE, &desc, buf, sizeof buf),
		"Device Online: eth7 0.0.0.0"));
	CHECK(!strcmp(
		ti_event_to_str(TI_EVENT_NETDEV_UP, &dev, buf, sizeof buf), "Device Up: eth7"));
	CHECK(!strcmp(ti_event_to_str(TI_EVENT_PROTO_SHUTDOWN, "bye", short_buf, sizeof short_buf),
		"Protoco"));
	CHECK(!ti_event_to_str(TI_EVENT_NONE, NULL, NULL, 4));
	CHECK(!ti_event_to_str(TI_EVENT_NONE, NULL, buf, 0));
}

/* Each status can be told from the others, and from one that the document does not have. */
static void every_status(void)
{
	for (int s = TI_NO_STATUS; s <= TI_ERROR; s++) {
		CHECK(*ti_status_2_str(s));
		CHECK(!strcmp(ti_status_2_str(s), ti_status_to_str(s)));
		for (int other = s + 1; other <= TI_ERROR + 1; other++)
			CHECK(strcmp(ti_status_2_str(s), ti_status_2_str(other)));
	}
}

static void no_entry_is_null(void)
{
	void *entries[36];

	memcpy(entries, registered, sizeof entries);
	for (int i = 0; i < 36; i++)
		CHECK(entries[i]);
}

int main(void)
{
	providers();
	strings();
	every_status();
	no_entry_is_null();
	end();
	return check_result();
}
