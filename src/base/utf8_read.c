/* SPDX-License-Identifier: Apache-2.0 */
/* One character of UTF-8: see utf8.h. Apart from utf8.c, because the trace, which that one uses,
 * shows texts by this one. */
#include "utf8.h"

size_t mu_utf8_read(const char *text, size_t nbytes, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	size_t n;

	if (nbytes == 0)
		return 0;
	n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
	if (n == 0 || n > nbytes)
		return 0;
	*code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}
