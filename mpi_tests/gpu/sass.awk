# SPDX-License-Identifier: Apache-2.0
# What a kernel's machine code does: reads `cuobjdump -sass` of one architecture and prints a line a kernel:
#
#	name loads wide narrow at-once local past
#
# loads: instructions that load from global memory; wide: those of 16 bytes; narrow: loads of less than 16 bytes within
# an innermost loop that has a wide one; at-once: the most wide loads in such a loop; local: accesses of local memory
# (a stack or spilled registers); past: the most wide loads in an innermost loop that pass the processor's cache, which
# are not among the others (what other blocks wrote). A loop is what lies between a branch backwards and its target.

# Adds the loads of an innermost loop: narrow ones count where there are wide ones.
function add_loop(from, to,   i, w, s, p) {
	for (i = from; i <= to; i++) {
		w += wide_at[i]
		s += narrow_at[i]
		p += past_at[i]
	}
	if (w > 0)
		narrow += s
	if (w > at_once)
		at_once = w
	if (p > past)
		past = p
}

function report(   i, j, innermost) {
	if (name == "")
		return
	narrow = at_once = past = 0
	for (i = 1; i <= loops; i++) {
		innermost = 1
		for (j = 1; j <= loops; j++)
			if (begin[j] >= begin[i] && end[j] <= end[i] && end[j] - begin[j] < end[i] - begin[i])
				innermost = 0
		if (innermost)
			add_loop(begin[i], end[i])
	}
	print name, loads + 0, wide + 0, narrow + 0, at_once + 0, local + 0, past + 0
}

$1 == "Function" {
	report()
	name = $3
	n = loops = loads = wide = local = 0
	split("", wide_at)
	split("", narrow_at)
	split("", past_at)
	split("", line_of)
	next
}

/^ +[/][*][0-9a-f]+[*][/] .*;/ {
	address = $1
	gsub(/^[/][*]0*|[*][/]$/, "", address)
	line_of[address] = ++n
	if (/ LDG\./) {
		loads++
		if (/ LDG\.[A-Z0-9.]*128\.STRONG/)
			past_at[n] = 1
		else if (/ LDG\.[A-Z0-9.]*128/)
			wide += wide_at[n] = 1
		else
			narrow_at[n] = 1
	}
	if (/ (LDL|STL)[. ]/)
		local++
	if (/ BRA[. ]/) {
		target = $0
		sub(/ *;.*/, "", target)
		sub(/^.*0x0*/, "", target)
		if (target in line_of) {
			begin[++loops] = line_of[target]
			end[loops] = n
		}
	}
}

END {
	report()
}
