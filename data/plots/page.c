/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a page about trainings: see page.h. */
#include "page.h"

#include <math.h>

enum { WIDTH = 560, HEIGHT = 300, LEFT = 58, RIGHT = 12, TOP = 12, BOTTOM = 40, COLOURS = 6 };
enum { FEW_POINTS = 40 };

void page_text(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc(*text, out);
		}
}

static const char style[] =
	":root{--ink:#1c2126;--soft:#5b6570;--paper:#fff;--card:#f5f6f8;--line:#d5dae0;"
	"--c0:#2463b4;--c1:#b3541e;--c2:#2c7a4b;--c3:#8a3f8f;--c4:#8a6d00;--c5:#b02a3b}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#9aa5b1;--paper:#14171a;"
	"--card:#1e2328;--line:#39424c;--c0:#6aa5f0;--c1:#f0975a;--c2:#6cc592;--c3:#cf8fd4;"
	"--c4:#d9b93f;--c5:#f2808d}}\n"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:1200px;padding:1.2rem;"
	"background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif}"
	"h1{font-size:1.5rem;margin:2.2rem 0 .4rem}"
	"h1:first-child{margin-top:.2rem}h2{font-size:1.1rem;margin:1.6rem 0 .5rem}"
	"p{margin:.3rem 0}.soft{color:var(--soft)}"
	".tiles,.charts{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fit,minmax(7.6rem,"
	"1fr))}"
	".charts{grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr))}"
	".tile,figure{background:var(--card);border:1px solid var(--line);border-radius:8px;"
	"padding:.6rem .8rem;margin:0;min-width:0}"
	".tile b{display:block;font-size:1.25rem}figcaption{font-weight:600}"
	"svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:12px}"
	".grid{stroke:var(--line)}.legend span{white-space:nowrap;margin-right:1rem}"
	".legend "
	"i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.3rem}"
	"table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem .2rem "
	"0;"
	"border-bottom:1px solid var(--line);vertical-align:top}"
	"td+td{min-width:4.9rem;overflow-wrap:anywhere}"
	".bar{display:flex;height:1.6rem;border-radius:6px;overflow:hidden}"
	"pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid "
	"var(--line);border-radius:8px;padding:.6rem .8rem;margin:.3rem 0;font-size:13px}"
	"@media(max-width:34rem){svg text{font-size:19px}}\n";

void page_begin(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      out);
	page_text(out, title);
	fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
	page_text(out, title);
	fputs("</h1>\n", out);
}

void page_end(FILE *out)
{
	fputs("</main>\n</body>\n</html>\n", out);
}

void page_tile(FILE *out, const char *name, const char *value)
{
	fputs("<div class=\"tile\"><b>", out);
	page_text(out, value);
	fputs("</b><span class=\"soft\">", out);
	page_text(out, name);
	fputs("</span></div>\n", out);
}

struct range {
	double low, high, step;
};

/* Bounds grown to about five whole steps: 1, 2 or 5 times a power of ten, `least` or more. */
static void round_out(struct range *r, double least)
{
	double size, power;

	if (r->high <= r->low) {
		r->low -= fabs(r->low) * 0.1 + 1e-9;
		r->high += fabs(r->high) * 0.1 + 1e-9;
	}
	size = (r->high - r->low) / 5;
	power = pow(10, floor(log10(size)));
	size /= power;
	r->step = fmax(least, (size <= 1 ? 1 : size <= 2 ? 2 : size <= 5 ? 5 : 10) * power);
	r->low = floor(r->low / r->step + 1e-9) * r->step;
	r->high = ceil(r->high / r->step - 1e-9) * r->step;
}

static bool find_ranges(const struct page_line *lines, size_t n, struct range *x, struct range *y)
{
	*x = *y = (struct range){INFINITY, -INFINITY, 1};
	for (size_t l = 0; l < n; l++)
		for (size_t i = 0; i < lines[l].n; i++)
			if (isfinite(lines[l].x[i]) && isfinite(lines[l].y[i])) {
				x->low = fmin(x->low, lines[l].x[i]);
				x->high = fmax(x->high, lines[l].x[i]);
				y->low = fmin(y->low, lines[l].y[i]);
				y->high = fmax(y->high, lines[l].y[i]);
			}
	return x->low <= x->high;
}

static double place(const struct range *r, double v, double from, double to)
{
	return from + (v - r->low) / (r->high - r->low) * (to - from);
}

static void put_axes(FILE *out, const struct range *x, const struct range *y, const char *x_name)
{
	const bool thousands = fmax(fabs(y->low), fabs(y->high)) >= 1e4;

	for (int k = 0; y->low + k * y->step <= y->high + y->step / 2; k++) {
		const double v = y->low + k * y->step, at = place(y, v, HEIGHT - BOTTOM, TOP);

		fprintf(out,
			"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
			"text-anchor=\"end\">%.6g%s</text>\n",
			LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4,
			fabs(v) < y->step / 2 ? 0
			: thousands           ? v / 1000
					      : v,
			thousands ? "k" : "");
	}
	for (int k = 0; x->low + k * x->step <= x->high + x->step / 2; k++) {
		const double v = x->low + k * x->step;

		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n",
			place(x, v, LEFT, WIDTH - RIGHT), HEIGHT - BOTTOM + 18,
			fabs(v) < x->step / 2 ? 0 : v);
	}
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
		HEIGHT - 6);
	page_text(out, x_name);
	fputs("</text>\n", out);
}

static void put_line(FILE *out, const struct page_line *line, const struct range *x,
		     const struct range *y)
{
	bool drawing = false;

	fputs("<path fill=\"none\" stroke-linejoin=\"round\" d=\"", out);
	for (size_t i = 0; i < line->n; i++) {
		if (!isfinite(line->x[i]) || !isfinite(line->y[i])) {
			drawing = false;
			continue;
		}
		fprintf(out, "%c%.1f %.1f", drawing ? 'L' : 'M',
			place(x, line->x[i], LEFT, WIDTH - RIGHT),
			place(y, line->y[i], HEIGHT - BOTTOM, TOP));
		drawing = true;
	}
	fprintf(out, "\" stroke=\"var(--c%d)\" stroke-width=\"%s\"%s/>\n", line->colour % COLOURS,
		line->dashed ? "1.5" : "2", line->dashed ? " stroke-dasharray=\"5 4\"" : "");
	for (size_t i = 0; !line->dashed && line->n <= FEW_POINTS && i < line->n; i++)
		if (isfinite(line->x[i]) && isfinite(line->y[i]))
			fprintf(out,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"var(--c%d)\"/>\n",
				place(x, line->x[i], LEFT, WIDTH - RIGHT),
				place(y, line->y[i], HEIGHT - BOTTOM, TOP), line->colour % COLOURS);
}

static void put_legend(FILE *out, const struct page_line *lines, size_t n)
{
	fputs("<div class=\"legend soft\">", out);
	for (size_t l = 0; l < n; l++)
		if (!lines[l].dashed) {
			fprintf(out, "<span><i style=\"background:var(--c%d)\"></i>",
				lines[l].colour % COLOURS);
			page_text(out, lines[l].name);
			fputs("</span>", out);
		}
	fputs("</div>\n", out);
}

void page_chart(FILE *out, const char *title, const char *x_name, const struct page_line *lines,
		size_t n, bool from_zero)
{
	struct range x, y;

	if (!find_ranges(lines, n, &x, &y))
		return;
	if (from_zero)
		y.low = fmin(y.low, 0);
	round_out(&x, 1); /* epochs, or lines */
	round_out(&y, 0);
	fputs("<figure><figcaption>", out);
	page_text(out, title);
	fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
		HEIGHT);
	page_text(out, title);
	fputs("\">\n", out);
	put_axes(out, &x, &y, x_name);
	for (size_t l = 0; l < n; l++)
		put_line(out, &lines[l], &x, &y);
	fputs("</svg>\n", out);
	put_legend(out, lines, n);
	fputs("</figure>\n", out);
}
