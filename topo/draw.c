// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/layout.h"
#include "topo/print.h"

/* Pixels, and bytes of a label. */
enum {
	LABEL_MAX = 16,
	LETTER = 7,
	PORT = 14, /* of a box's width, where ports have numbers */
	BOX = 24,
	GAP = 10,
	ROW = 170,
	MARGIN = 20,
	ARC_MAX = 110,
	ARC_TOP = 400
};

/* Each wire once: from its lower end. */
static bool is_lower_end(const struct topo *t, uint32_t n, unsigned p)
{
	const struct topo_port *port = &t->nodes[n].ports[p];

	return port->peer != TOPO_NONE &&
	       (n < port->peer || (n == port->peer && p < port->peer_port));
}

/* ---- dot ---- */

static void dot_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void dot_node(const struct topo *t, uint32_t n, FILE *out)
{
	static const char *const shapes[] = {
		[TOPO_CA] = "ellipse", [TOPO_SWITCH] = "box", [TOPO_ROUTER] = "diamond"};

	fprintf(out, "\tn%u [shape=%s, label=\"", n, shapes[t->nodes[n].kind]);
	dot_text(t->nodes[n].id, out);
	fputs("\", tooltip=\"", out);
	dot_text(t->nodes[n].description, out);
	fputs("\"];\n", out);
}

static void dot_wires(const struct topo *t, uint32_t n, FILE *out)
{
	for (unsigned p = 1; p <= t->nodes[n].n_ports; p++)
		if (is_lower_end(t, n, p))
			fprintf(out, "\tn%u -- n%u [taillabel=\"%u\", headlabel=\"%u\"];\n", n,
				t->nodes[n].ports[p].peer, p, t->nodes[n].ports[p].peer_port);
}

int topo_draw_dot(const struct topo *t, FILE *out)
{
	struct layout l;
	int rc = layout_make(&l, t);

	if (rc)
		return rc;
	fputs("graph topology {\n\tgraph [rankdir=BT, ranksep=1.5];\n"
	      "\tedge [labelfontsize=9, labeldistance=1.5];\n",
		out);
	for (uint32_t v = 0; v < l.n_levels; v++) {
		fputs("\t{ rank=same;", out);
		for (uint32_t i = l.first[v]; i < l.first[v + 1]; i++)
			fprintf(out, " n%u;", l.order[i]);
		fputs(" }\n", out);
	}
	for (uint32_t n = 0; n < t->n_nodes; n++)
		dot_node(t, n, out);
	for (uint32_t n = 0; n < t->n_nodes; n++)
		dot_wires(t, n, out);
	fputs("}\n", out);
	layout_free(&l);
	return 0;
}

/* ---- SVG ---- */

struct box {
	double x, y, width; /* x of its middle, y of its upper edge */
};

struct picture {
	const struct topo *t;
	struct layout l;
	struct box *boxes;
	double width, height;
	bool detail;
	FILE *out;
};

static void xml_text(const char *text, size_t len, FILE *out)
{
	for (; len--; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
}

/* How much of a text its label shows: whole characters. */
static size_t label_len(const char *text)
{
	size_t len = strlen(text);

	if (len <= LABEL_MAX)
		return len;
	for (len = LABEL_MAX - 1; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
		len--;
	return len;
}

/* The id, or the description where the id is but a GUID. */
static const char *label_of(const struct topo_node *n)
{
	return strlen(n->id) > LABEL_MAX ? n->description : n->id;
}

static double box_width(const struct picture *s, uint32_t n)
{
	const struct topo_node *node = &s->t->nodes[n];
	double label = label_len(label_of(node)) * LETTER + 14.0;
	double ports = s->detail ? node->n_ports * PORT : 0;

	return label > ports ? label : ports;
}

/* How wide a row is when its boxes stand side by side. */
static double row_width(struct picture *s, uint32_t v)
{
	double width = 0;

	for (uint32_t i = s->l.first[v]; i < s->l.first[v + 1]; i++) {
		struct box *b = &s->boxes[s->l.order[i]];

		b->width = box_width(s, s->l.order[i]);
		width += b->width + GAP;
	}
	return width;
}

/* Puts a row's boxes side by side, what is left of the picture's width between them. */
static void place_row(struct picture *s, uint32_t v, double width)
{
	const uint32_t n = s->l.first[v + 1] - s->l.first[v];
	const double between = n ? (s->width - 2 * MARGIN - width) / n : 0;
	double x = MARGIN;

	for (uint32_t i = s->l.first[v]; i < s->l.first[v + 1]; i++) {
		struct box *b = &s->boxes[s->l.order[i]];

		b->x = x + (b->width + GAP + between) / 2;
		x += b->width + GAP + between;
	}
}

/* Where a port is on its box. */
static double port_x(const struct picture *s, uint32_t n, unsigned p)
{
	const struct box *b = &s->boxes[n];

	return b->x - b->width / 2 + b->width * (p - 0.5) / s->t->nodes[n].n_ports;
}

/* How high the arc of a wire within a row rises; in the top row there is room for all of them. */
static double arc_of(const struct picture *s, uint32_t n, unsigned p)
{
	const struct topo_port *port = &s->t->nodes[n].ports[p];
	double d = port_x(s, n, p) - port_x(s, port->peer, port->peer_port);
	double most = s->l.level[n] + 1 == s->l.n_levels ? ARC_TOP : ARC_MAX;
	double up = 24 + (d < 0 ? -d : d) / 8;

	return up < most ? up : most;
}

static double highest_arc(const struct picture *s)
{
	const struct layout *l = &s->l;
	double most = 0;

	for (uint32_t n = 0; n < s->t->n_nodes; n++)
		for (unsigned p = 1; l->level[n] + 1 == l->n_levels && p <= s->t->nodes[n].n_ports;
			p++)
			if (is_lower_end(s->t, n, p) &&
				l->level[s->t->nodes[n].ports[p].peer] == l->level[n] &&
				arc_of(s, n, p) > most)
				most = arc_of(s, n, p);
	return most;
}

static void place_boxes(struct picture *s)
{
	double width = 200;

	for (uint32_t v = 0; v < s->l.n_levels; v++) {
		double row = row_width(s, v);

		width = row > width ? row : width;
	}
	s->width = width + 2 * MARGIN;
	for (uint32_t v = 0; v < s->l.n_levels; v++)
		place_row(s, v, row_width(s, v));
	s->height = 2 * MARGIN + BOX + (s->l.n_levels ? s->l.n_levels - 1 : 0) * (double)ROW +
		    highest_arc(s);
	for (uint32_t n = 0; n < s->t->n_nodes; n++)
		s->boxes[n].y = s->height - MARGIN - BOX - s->l.level[n] * (double)ROW;
}

static void draw_number(const struct picture *s, double x, double y, unsigned p)
{
	if (s->detail)
		fprintf(s->out, "<text class=\"p\" x=\"%.0f\" y=\"%.0f\">%u</text>\n", x, y, p);
}

static void draw_title(const struct picture *s, uint32_t n, unsigned p, uint32_t m, unsigned q)
{
	const struct topo_node *a = &s->t->nodes[n], *b = &s->t->nodes[m];

	fputs("<title>", s->out);
	xml_text(a->id, strlen(a->id), s->out);
	fprintf(s->out, "[%u] - ", p);
	xml_text(b->id, strlen(b->id), s->out);
	fprintf(s->out, "[%u]</title></path>\n", q);
}

/* A line between rows, an arc within one. */
static void draw_wire(const struct picture *s, uint32_t n, unsigned p)
{
	const struct topo_port *port = &s->t->nodes[n].ports[p];
	const struct box *a = &s->boxes[n], *b = &s->boxes[port->peer];
	const double x = port_x(s, n, p), u = port_x(s, port->peer, port->peer_port);
	const double y = a->y <= b->y && a->y != b->y ? a->y + BOX : a->y;
	const double w = b->y <= a->y && a->y != b->y ? b->y + BOX : b->y;

	fprintf(s->out, "<path d=\"M%.0f %.0f", x, y);
	if (y == w)
		fprintf(s->out, "Q%.0f %.0f %.0f %.0f", (x + u) / 2, y - 2 * arc_of(s, n, p), u, w);
	else
		fprintf(s->out, "L%.0f %.0f", u, w);
	fputs("\">", s->out);
	draw_title(s, n, p, port->peer, port->peer_port);
	draw_number(s, x, y == a->y ? y - 3 : y + 9, p);
	draw_number(s, u, w == b->y ? w - 3 : w + 9, port->peer_port);
}

static void draw_box(const struct picture *s, uint32_t n)
{
	static const char classes[] = {[TOPO_CA] = 'a', [TOPO_SWITCH] = 's', [TOPO_ROUTER] = 'r'};
	const struct topo_node *node = &s->t->nodes[n];
	const struct box *b = &s->boxes[n];
	const char *label = label_of(node);
	size_t len = label_len(label);

	fprintf(s->out, "<g><title>%u: %s ", n, topo_kind_name(node->kind));
	xml_text(node->id, strlen(node->id), s->out);
	fputs(", ", s->out);
	xml_text(node->description, strlen(node->description), s->out);
	fprintf(s->out,
		", GUID 0x%016" PRIx64 ", %u of %u ports wired</title>"
		"<rect class=\"%c\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" rx=\"3\"/>"
		"<text x=\"%.0f\" y=\"%.0f\">",
		node->guid, topo_wired(node), node->n_ports, classes[node->kind],
		b->x - b->width / 2, b->y, b->width, BOX, b->x, b->y + 16);
	xml_text(label, len, s->out);
	fprintf(s->out, "%s</text></g>\n", label[len] ? "\xe2\x80\xa6" : "");
}

static void draw_all(const struct picture *s)
{
	fprintf(s->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n<style>"
		"text{font:11px monospace;text-anchor:middle}"
		".p{font-size:8px;fill:#555;stroke:#fff;stroke-width:2px;paint-order:stroke}"
		"path{fill:none;stroke:#89a}path:hover{stroke:#d22;stroke-width:2}"
		"rect{stroke:#345}.a{fill:#e8f2e4}.s{fill:#dde8f6}.r{fill:#f6e6d4}"
		"</style>\n<rect width=\"100%%\" height=\"100%%\" "
		"style=\"fill:#fff;stroke:none\"/>\n",
		s->width, s->height, s->width, s->height);
	for (uint32_t n = 0; n < s->t->n_nodes; n++)
		for (unsigned p = 1; p <= s->t->nodes[n].n_ports; p++)
			if (is_lower_end(s->t, n, p))
				draw_wire(s, n, p);
	for (uint32_t n = 0; n < s->t->n_nodes; n++)
		draw_box(s, n);
	fputs("</svg>\n", s->out);
}

int topo_draw_svg(const struct topo *t, FILE *out)
{
	struct picture s = {.t = t, .detail = t->n_nodes <= DRAW_DETAIL, .out = out};

	s.boxes = calloc(t->n_nodes + 1, sizeof *s.boxes);
	if (!s.boxes || layout_make(&s.l, t)) {
		free(s.boxes);
		return -ENOMEM;
	}
	place_boxes(&s);
	draw_all(&s);
	layout_free(&s.l);
	free(s.boxes);
	return 0;
}
