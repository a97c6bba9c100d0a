# SPDX-License-Identifier: Apache-2.0
# Lines of costs (mpi_tests/pretend/costs.h) become a table; see jobs/gpu/model.

{
	name = $1
	bytes = ($3 + $4) / ($1 ~ /host$/ ? host : copy) / 1e3
	products = $5 / ($6 ? flops : flops32) / 1e6
	count[name] += $2
	read[name] += $2 * $3
	written[name] += $2 * $4
	operations[name] += $2 * $5
	by_bytes[name] += $2 * (bytes > products ? bytes : 0)
	by_products[name] += $2 * (bytes > products ? 0 : products)
	if (!$7)
		unknown[name] = 1
}

function total(name)
{
	return by_bytes[name] + by_products[name] + gap * count[name]
}

function row(name, text)
{
	printf "%-28s %6d %10.1f %10.1f %10.1f %9.0f  %s\n", name, count[name], read[name] / 1e6, \
		written[name] / 1e6, operations[name] / 1e9, total(name), text
}

function bound_by(name)
{
	if (name ~ /host$/)
		return "the bus, beside the rest"
	if (unknown[name])
		return "unknown"
	if (gap * count[name] > by_bytes[name] + by_products[name])
		return "launches"
	return by_bytes[name] >= by_products[name] ? "memory" : "products"
}

END {
	printf "%-28s %6s %10s %10s %10s %9s  %s\n", "kernel", "count", "MB read", "MB written", "GFLOP", "us", \
		"bound by"
	for (name in count)
		order[++n] = name
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && (total(order[j]) > total(order[j - 1]) || \
		    (total(order[j]) == total(order[j - 1]) && order[j] < order[j - 1])); j--) {
			t = order[j]
			order[j] = order[j - 1]
			order[j - 1] = t
		}
	for (i = 1; i <= n; i++) {
		name = order[i]
		row(name, bound_by(name))
		if (name ~ /host$/)
			continue
		count["all"] += count[name]
		read["all"] += read[name]
		written["all"] += written[name]
		operations["all"] += operations[name]
		by_bytes["all"] += by_bytes[name]
		by_products["all"] += by_products[name]
	}
	row("all", "")
	printf "of these us: memory %.0f, products %.0f, launches %.0f\n", by_bytes["all"], by_products["all"], \
		gap * count["all"]
	if (batch > 0)
		printf "%.0f samples/s at batch size %d; %.0f if bytes alone counted\n", batch * 1e6 / total("all"), \
			batch, batch * 1e9 * copy / (read["all"] + written["all"])
}
