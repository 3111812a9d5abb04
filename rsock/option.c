// SPDX-License-Identifier: BSD-3-Clause
/* Socket options and flags. */
#include "rsock/rsock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rsock/table.h"
#include "rsock/wait.h"

enum { SEGMENT = 4096, MAX_ROUTES = 16, NO_WAIT_NS = 1 };

/* When an option may be set: sizes are ignored once they are in use, as riostream expects. */
enum when { ANY_TIME, BEFORE_BIND, BEFORE_USE };

struct option {
	int level, name;
	size_t at; /* an int of rs_options */
	int min, max;
	enum when when;
};

#define AT(field) offsetof(struct rs_options, field)

static const struct option options[] = {
	{SOL_SOCKET, SO_SNDBUF, AT(sndbuf), RS_MIN_BUF, RS_MAX_BUF, BEFORE_USE},
	{SOL_SOCKET, SO_RCVBUF, AT(rcvbuf), RS_MIN_BUF, RS_MAX_BUF, BEFORE_USE},
	{SOL_SOCKET, SO_REUSEADDR, AT(reuseaddr), 0, 1, BEFORE_BIND},
	{SOL_SOCKET, SO_KEEPALIVE, AT(keepalive), 0, 1, ANY_TIME},
	{SOL_SOCKET, SO_OOBINLINE, AT(oobinline), 0, 1, ANY_TIME},
	{IPPROTO_TCP, TCP_NODELAY, AT(nodelay), 0, 1, ANY_TIME},
	{IPPROTO_TCP, TCP_KEEPIDLE, AT(keepidle), 0, INT32_MAX, ANY_TIME},
	{IPPROTO_IPV6, IPV6_V6ONLY, AT(v6only), 0, 1, BEFORE_BIND},
	{SOL_RDMA, RDMA_SQSIZE, AT(sqsize), RS_MIN_RQ, RS_MAX_WR, BEFORE_USE},
	{SOL_RDMA, RDMA_RQSIZE, AT(rqsize), RS_MIN_RQ, RS_MAX_WR, BEFORE_USE},
	{SOL_RDMA, RDMA_INLINE, AT(inline_size), 0, RS_MAX_INLINE, BEFORE_USE},
	{SOL_RDMA, RDMA_IOMAPSIZE, AT(iomap_size), 0, RS_MAX_IOMAP, BEFORE_USE},
};

static const struct option *find_option(int level, int name)
{
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	return NULL;
}

static int *value_of(struct rsocket *s, const struct option *o)
{
	return (int *)((char *)&s->opt + o->at);
}

/* Queues and buffers are made already. */
static bool in_use(const struct rsocket *s)
{
	return s->dg || s->st.mem || s->state > RS_LISTENING;
}

static int set_int(struct rsocket *s, const struct option *o, const void *val, socklen_t len)
{
	int n;

	if (len < sizeof n)
		return -EINVAL;
	memcpy(&n, val, sizeof n);
	if (o->when == BEFORE_BIND && s->state != RS_IDLE)
		return *value_of(s, o) == !!n ? 0 : -EINVAL;
	if (n < 0)
		return -EINVAL;
	if (o->max == 1)
		n = !!n;
	n = n < o->min ? o->min : n > o->max ? o->max : n;
	if (o->when != BEFORE_USE || !in_use(s))
		*value_of(s, o) = n;
	return 0;
}

/* As TCP: less than nothing does not wait, and more than the clock can hold (0) is for ever. */
static int set_time(uint64_t *ns, const void *val, socklen_t len)
{
	const time_t most = INT64_MAX / NSEC_PER_SEC / 2;
	struct timeval t;

	if (len < sizeof t)
		return -EINVAL;
	memcpy(&t, val, sizeof t);
	if (t.tv_usec < 0 || t.tv_usec >= 1000000)
		return -EDOM;
	if (t.tv_sec < 0)
		*ns = NO_WAIT_NS;
	else if (t.tv_sec > most)
		*ns = 0;
	else
		*ns = t.tv_sec * NSEC_PER_SEC + t.tv_usec * (uint64_t)NSEC_PER_USEC;
	return 0;
}

static int set_linger(struct rsocket *s, const void *val, socklen_t len)
{
	struct linger l;

	if (len < sizeof l)
		return -EINVAL;
	memcpy(&l, val, sizeof l);
	if (l.l_linger < 0)
		return -EINVAL;
	s->opt.linger = l;
	return 0;
}

/* Path records, which rconnect() gives to rdma_cm. */
static int set_route(struct rsocket *s, const void *val, socklen_t len)
{
	struct ibv_path_data *route;

	if (is_dgram(s) || s->state > RS_BOUND || !len || len % sizeof *route ||
		len > MAX_ROUTES * sizeof *route)
		return -EINVAL;
	route = malloc(len);
	if (!route)
		return -ENOMEM;
	memcpy(route, val, len);
	free(s->route);
	s->route = route;
	s->route_len = len;
	return 0;
}

static int set_option(struct rsocket *s, int level, int name, const void *val, socklen_t len)
{
	const struct option *o = find_option(level, name);

	if (!val)
		return -EFAULT;
	if (o)
		return set_int(s, o, val, len);
	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(s, val, len);
	if (level == SOL_SOCKET && name == SO_RCVTIMEO)
		return set_time(&s->opt.rcvtimeo, val, len);
	if (level == SOL_SOCKET && name == SO_SNDTIMEO)
		return set_time(&s->opt.sndtimeo, val, len);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return set_route(s, val, len);
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return 0; /* a hint; messages are as long as they are */
	return -ENOPROTOOPT;
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rsocket *s = rs_enter(socket);

	return s ? (int)rs_leave(s, set_option(s, level, optname, optval, optlen)) : -1;
}

/* ---- reading them ---- */

static int give(const void *from, size_t size, void *val, socklen_t *len)
{
	if (*len > size)
		*len = size;
	memcpy(val, from, *len);
	return 0;
}

static int give_int(int n, void *val, socklen_t *len)
{
	return give(&n, sizeof n, val, len);
}

static int give_time(uint64_t ns, void *val, socklen_t *len)
{
	struct timeval t = {
		.tv_sec = ns / NSEC_PER_SEC, .tv_usec = ns % NSEC_PER_SEC / NSEC_PER_USEC};

	return give(&t, sizeof t, val, len);
}

static void pack_path(const struct ibv_sa_path_rec *from, struct ibv_path_record *to)
{
	*to = (struct ibv_path_record){
		.dgid = from->dgid,
		.sgid = from->sgid,
		.dlid = from->dlid,
		.slid = from->slid,
		.flowlabel_hoplimit = htonl(ntohl(from->flow_label) << 8 | from->hop_limit),
		.tclass = from->traffic_class,
		.reversible_numpath = from->reversible << 7 | from->numb_path,
		.pkey = from->pkey,
		.qosclass_sl = htons(from->sl),
		.mtu = from->mtu_selector << 6 | from->mtu,
		.rate = from->rate_selector << 6 | from->rate,
		.packetlifetime = from->packet_life_time_selector << 6 | from->packet_life_time,
		.preference = from->preference,
	};
}

static int give_route(struct rsocket *s, void *val, socklen_t *len)
{
	struct ibv_path_data data = {0};

	if (is_dgram(s) || !s->id || !s->id->route.num_paths)
		return -ENOTCONN;
	if (*len < sizeof data)
		return -EINVAL;
	data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	pack_path(s->id->route.path_rec, &data.path);
	return give(&data, sizeof data, val, len);
}

static int give_socket_option(struct rsocket *s, int name, void *val, socklen_t *len)
{
	int err;

	switch (name) {
	case SO_ERROR:
		rs_progress(s, true);
		err = s->err;
		s->err = 0;
		return give_int(err, val, len);
	case SO_TYPE:
		return give_int(s->type, val, len);
	case SO_DOMAIN:
		return give_int(s->family, val, len);
	case SO_PROTOCOL:
		return give_int(is_dgram(s) ? IPPROTO_UDP : IPPROTO_TCP, val, len);
	case SO_ACCEPTCONN:
		return give_int(s->state == RS_LISTENING, val, len);
	case SO_LINGER:
		return give(&s->opt.linger, sizeof s->opt.linger, val, len);
	case SO_RCVTIMEO:
		return give_time(s->opt.rcvtimeo, val, len);
	case SO_SNDTIMEO:
		return give_time(s->opt.sndtimeo, val, len);
	default:
		return -ENOPROTOOPT;
	}
}

/* As much as there is to say: nothing is lost, so nothing is counted. */
static int give_info(struct rsocket *s, void *val, socklen_t *len)
{
	struct tcp_info info = {.tcpi_snd_mss = SEGMENT, .tcpi_rcv_mss = SEGMENT};

	if (is_dgram(s))
		return -ENOPROTOOPT;
	if (s->state == RS_LISTENING)
		info.tcpi_state = TCP_LISTEN;
	else
		info.tcpi_state = s->state == RS_CONNECTED ? TCP_ESTABLISHED : TCP_CLOSE;
	return give(&info, sizeof info, val, len);
}

static int get_option(struct rsocket *s, int level, int name, void *val, socklen_t *len)
{
	const struct option *o = find_option(level, name);

	if (!val || !len)
		return -EFAULT;
	if (o)
		return give_int(*value_of(s, o), val, len);
	if (level == SOL_SOCKET)
		return give_socket_option(s, name, val, len);
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return give_int(SEGMENT, val, len);
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return give_info(s, val, len);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return give_route(s, val, len);
	return -ENOPROTOOPT;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *s = rs_enter(socket);

	return s ? (int)rs_leave(s, get_option(s, level, optname, optval, optlen)) : -1;
}

/* ---- flags ---- */

int rfcntl(int socket, int cmd, ... /* arg */)
{
	struct rsocket *s = rs_enter(socket);
	va_list args;
	long arg = 0;
	int ret;

	if (!s)
		return -1;
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		arg = va_arg(args, long);
		va_end(args);
	}
	switch (cmd) {
	case F_GETFL:
		ret = O_RDWR | (s->nonblock ? O_NONBLOCK : 0);
		break;
	case F_SETFL:
		s->nonblock = arg & O_NONBLOCK;
		ret = 0;
		break;
	case F_GETFD:
	case F_SETFD:
		ret = fcntl(s->fd, cmd, (int)arg);
		ret = ret < 0 ? -errno : ret;
		break;
	default:
		ret = -EOPNOTSUPP;
		break;
	}
	return rs_leave(s, ret);
}
