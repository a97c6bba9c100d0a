/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to write each digit, as places that a pen passes, written for Muster. A curve is laid
 * through the nodes of a stroke (path.c), so nodes are few and the distance between
 * neighbours changes slowly within a curve.
 */
#include "digits.h"

#include <assert.h>

/* A table that is read by eye. */
/* clang-format off */

/* Nodes of a glyph: start, smooth, corner. */
#define S(x, y) {x, y, DIGITS_START}
#define O(x, y) {x, y, DIGITS_SMOOTH}
#define C(x, y) {x, y, DIGITS_CORNER}

enum { VARIANTS_MAX = 4 };

struct digit {
	int n;
	struct digits_glyph glyph[VARIANTS_MAX];
};

static const struct digit digits[DIGITS_CLASSES] = {
	{3, {
		/* an oval from the top, to the left */
		{9, {S(55, 4), O(33, 14), O(22, 48), O(33, 87), O(52, 97), O(70, 86), O(78, 50),
		     O(69, 14), O(48, 3)}},
		/* from the upper right, closing inside */
		{10, {S(68, 12), O(46, 4), O(27, 28), O(24, 66), O(40, 95), O(62, 90), O(76, 60),
		      O(74, 26), O(60, 7), O(44, 10)}},
		/* round, to the right */
		{9, {S(38, 10), O(64, 6), O(82, 32), O(80, 70), O(58, 95), O(32, 90), O(18, 60),
		     O(22, 26), O(46, 5)}},
	}},
	{3, {
		{2, {S(51, 2), O(49, 98)}},
		/* with an upstroke */
		{3, {S(37, 25), C(53, 2), O(52, 98)}},
		/* with upstroke and foot */
		{5, {S(34, 20), C(52, 3), O(52, 97), S(28, 97), O(76, 96)}},
	}},
	{3, {
		/* a straight foot */
		{9, {S(23, 26), O(36, 8), O(58, 4), O(75, 22), O(67, 46), O(44, 72), C(20, 95),
		     O(50, 95), O(82, 94)}},
		/* a loop at the foot */
		{11, {S(24, 24), O(42, 5), O(66, 8), O(74, 30), O(58, 62), O(36, 87), O(21, 90),
		      O(23, 77), O(40, 79), O(60, 92), O(83, 90)}},
		/* a waved foot */
		{9, {S(26, 14), O(50, 4), O(74, 14), O(71, 38), O(48, 66), C(21, 94), O(38, 87),
		     O(58, 95), O(82, 91)}},
	}},
	{3, {
		{9, {S(26, 14), O(50, 3), O(72, 16), O(66, 38), C(42, 48), O(70, 57), O(78, 77),
		     O(55, 97), O(23, 87)}},
		/* a flat top */
		{8, {S(25, 6), O(50, 5), C(75, 6), C(46, 41), O(72, 53), O(76, 78), O(52, 97),
		     O(22, 88)}},
		/* a small upper bowl */
		{10, {S(30, 9), O(54, 4), O(69, 20), O(56, 39), C(40, 43), O(67, 50), O(80, 73),
		      O(64, 94), O(38, 97), O(20, 84)}},
	}},
	{3, {
		/* open, with corners */
		{6, {S(34, 4), C(21, 57), O(50, 57), O(84, 55), S(67, 25), O(63, 98)}},
		/* closed */
		{6, {S(61, 3), C(17, 66), O(50, 67), O(85, 65), S(62, 4), O(61, 98)}},
		/* open, round */
		{8, {S(25, 5), O(22, 34), O(34, 52), O(54, 50), O(71, 37), S(75, 4), O(70, 50),
		     O(64, 98)}},
	}},
	{3, {
		/* in one stroke */
		{9, {S(76, 5), O(54, 6), C(33, 6), C(28, 44), O(54, 38), O(76, 58), O(70, 86),
		     O(44, 97), O(21, 86)}},
		/* the bar last */
		{10, {S(35, 8), C(28, 47), O(54, 41), O(75, 62), O(65, 89), O(40, 97), O(20, 88),
		      S(34, 8), O(56, 7), O(81, 4)}},
		/* without corners */
		{9, {S(78, 7), O(54, 5), O(33, 14), O(31, 36), O(55, 45), O(74, 64), O(65, 90),
		     O(40, 97), O(20, 88)}},
	}},
	{3, {
		{9, {S(66, 4), O(42, 22), O(26, 56), O(30, 88), O(52, 98), O(74, 82), O(66, 58),
		     O(46, 56), O(29, 72)}},
		/* a straight stem */
		{9, {S(52, 2), O(35, 32), O(24, 66), O(36, 94), O(60, 95), O(75, 76), O(62, 58),
		     O(42, 62), O(28, 80)}},
		/* the top bent */
		{10, {S(74, 14), O(56, 4), O(35, 22), O(24, 56), O(32, 90), O(57, 97), O(76, 78),
		      O(62, 56), O(39, 62), O(26, 76)}},
	}},
	{4, {
		{5, {S(21, 8), O(50, 7), C(79, 6), O(58, 48), O(42, 98)}},
		/* a hook on the left */
		{6, {S(21, 24), C(23, 7), O(50, 8), C(78, 6), O(58, 46), O(46, 98)}},
		/* a bar across the stem */
		{7, {S(21, 8), O(50, 7), C(78, 6), O(58, 48), O(44, 98), S(36, 51), O(76, 48)}},
		/* a waved top */
		{7, {S(21, 18), O(34, 7), O(58, 12), C(80, 5), O(64, 36), O(54, 66), O(51, 98)}},
	}},
	{3, {
		/* one stroke, closed at the upper right */
		{12, {S(70, 20), O(52, 3), O(30, 16), O(38, 38), O(61, 54), O(75, 76), O(52, 97),
		      O(26, 80), O(38, 56), O(62, 38), O(72, 20), O(64, 7)}},
		/* two ovals */
		{14, {S(52, 48), O(30, 38), O(30, 14), O(50, 3), O(70, 14), O(70, 36), O(49, 48),
		      S(50, 48), O(26, 60), O(25, 84), O(50, 97), O(75, 84), O(74, 60), O(47, 47)}},
		/* one stroke, almost open at the top */
		{11, {S(72, 12), O(50, 4), O(30, 18), O(43, 42), O(66, 58), O(73, 82), O(48, 97),
		      O(25, 80), O(41, 54), O(64, 34), O(76, 8)}},
	}},
	{3, {
		/* a straight stem */
		{9, {S(72, 20), O(52, 4), O(30, 16), O(26, 38), O(45, 50), O(64, 41), C(74, 14),
		     O(70, 56), O(66, 98)}},
		/* a tail to the left */
		{11, {S(70, 16), O(48, 3), O(26, 22), O(34, 46), O(57, 46), O(72, 26), C(75, 12),
		      O(76, 46), O(68, 80), O(48, 97), O(26, 90)}},
		/* the stem as a stroke of its own */
		{9, {S(71, 20), O(50, 5), O(28, 22), O(35, 46), O(57, 45), O(72, 26), S(74, 6),
		     O(72, 52), O(58, 98)}},
	}},
};

/* clang-format on */

const struct digits_glyph *digits_glyphs(int label, int *n)
{
	assert(label >= 0 && label < DIGITS_CLASSES);
	*n = digits[label].n;
	return digits[label].glyph;
}
