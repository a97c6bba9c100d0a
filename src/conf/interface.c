/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network interface of messages between nodes: --interface, or MXNet's DMLC_INTERFACE. MPI
 * libraries choose it in MPI_Init, by environment variables of their own. If the user sets none,
 * the TCP connections of this process to other hosts show which they have chosen.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"

#include <muster/base.h>

/* The variable of each library. To NCCL a name is a prefix of names, unless it begins with "=". */
static const struct {
	const char *name, *prefix;
} variables[] = {
	{"UCX_NET_DEVICES", ""},
	{"FI_TCP_IFACE", ""},
	{"FI_SOCKETS_IFACE", ""},
	{"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", ""},
	{"OMPI_MCA_btl_tcp_if_include", ""},
	{"NCCL_SOCKET_IFNAME", "="},
};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

static void value_for(size_t i, const char *name, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s%s", variables[i].prefix, name);
}

/* The variable goes before the site's file. */
const char *mu_conf_interface(const struct conf *v)
{
	const bool of_site = v->interface == v->site.interface;
	const char *named = getenv("DMLC_INTERFACE");
	const char *name = of_site && named && *named ? named : v->interface;

	return name && *name ? name : NULL;
}

static const void *address_of(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return &((const struct sockaddr_in *)(const void *)a)->sin_addr;
	if (a->sa_family == AF_INET6)
		return &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
	return NULL;
}

/* An address of the interface, IPv4 before IPv6; "" if it has none. */
static void find_address(const struct ifaddrs *all, const char *name, char *text, size_t nbytes)
{
	*text = '\0';
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const void *address = i->ifa_addr ? address_of(i->ifa_addr) : NULL;

		if (!address || strcmp(i->ifa_name, name) != 0 ||
		    (*text && i->ifa_addr->sa_family != AF_INET))
			continue;
		inet_ntop(i->ifa_addr->sa_family, address, text, (socklen_t)nbytes);
		if (i->ifa_addr->sa_family == AF_INET)
			break;
	}
}

/* "eth0 (10.0.0.1), lo (127.0.0.1)": all with addresses. */
static void list_interfaces(const struct ifaddrs *all, char *text, size_t nbytes)
{
	size_t used = 0;

	snprintf(text, nbytes, "none");
	for (const struct ifaddrs *i = all; i && used < nbytes; i = i->ifa_next) {
		char address[INET6_ADDRSTRLEN];
		bool seen = false;

		for (const struct ifaddrs *j = all; j != i && !seen; j = j->ifa_next)
			seen = strcmp(i->ifa_name, j->ifa_name) == 0;
		find_address(all, i->ifa_name, address, sizeof address);
		if (!seen && *address)
			used += (size_t)snprintf(text + used, nbytes - used, "%s%s (%s)",
						 used ? ", " : "", i->ifa_name, address);
	}
}

/* MU_ERR_USAGE if this host has no such interface; the message lists its interfaces. */
static enum mu_status find(const char *name, const char *asked, char *address, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct ifaddrs *all = NULL;
	char list[1024], host[64] = "";

	*address = '\0';
	if (getifaddrs(&all) != 0)
		MU_FAIL(MU_ERR_IO, "cannot list the network interfaces of this host: %m");
	find_address(all, name, address, nbytes);
	if (!*address) {
		gethostname(host, sizeof host - 1);
		list_interfaces(all, list, sizeof list);
		MU_FAIL(MU_ERR_USAGE,
			"%s%s: host %s has no such interface with an address; it has: %s",
			asked, name, host, list);
	}
out:
	if (all)
		freeifaddrs(all);
	return st;
}

/* The local address of a TCP connection to another host; false if fd is not one. */
static bool connection(int fd, char *mine, size_t nbytes)
{
	struct sockaddr_storage ends[2];
	socklen_t n[2] = {sizeof *ends, sizeof *ends};
	struct sockaddr *a = (struct sockaddr *)ends, *b = (struct sockaddr *)(ends + 1);
	char other[INET6_ADDRSTRLEN];

	if (getsockname(fd, a, &n[0]) != 0 || getpeername(fd, b, &n[1]) != 0 || !address_of(a) ||
	    !address_of(b))
		return false;
	inet_ntop(a->sa_family, address_of(a), mine, (socklen_t)nbytes);
	inet_ntop(b->sa_family, address_of(b), other, sizeof other);
	return strcmp(mine, other) != 0;
}

/*
 * Does the parent have the same file? Then the launcher has opened it, not MPI. false if the
 * parent's files cannot be read.
 */
static bool is_inherited(const char *fd)
{
	char path[64], mine[64] = "", other[64];
	DIR *fds;
	bool found = false;

	snprintf(path, sizeof path, "/proc/self/fd/%.10s", fd);
	if (readlink(path, mine, sizeof mine - 1) < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)getppid());
	fds = opendir(path);
	for (const struct dirent *d; fds && !found && (d = readdir(fds));) {
		ssize_t n = readlinkat(dirfd(fds), d->d_name, other, sizeof other - 1);

		other[n > 0 ? n : 0] = '\0';
		found = strcmp(mine, other) == 0;
	}
	if (fds)
		closedir(fds);
	return found;
}

/* The interface with this address; "?": there is none. */
static const char *owner(const struct ifaddrs *all, const char *address)
{
	char text[INET6_ADDRSTRLEN];

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const void *a = i->ifa_addr ? address_of(i->ifa_addr) : NULL;

		if (a && strcmp(inet_ntop(i->ifa_addr->sa_family, a, text, sizeof text),
				address) == 0)
			return i->ifa_name;
	}
	return "?";
}

/* "eth0 10.0.0.1, eth1 10.1.0.1"; "": there is no TCP connection to another host. */
static void list_used(char *text, size_t nbytes)
{
	DIR *fds = opendir("/proc/self/fd");
	struct ifaddrs *all = NULL;
	size_t used = 0;

	if (getifaddrs(&all) != 0)
		all = NULL;
	for (const struct dirent *d; fds && (d = readdir(fds)) && used < nbytes;) {
		char address[INET6_ADDRSTRLEN], entry[INET6_ADDRSTRLEN + IF_NAMESIZE + 4];
		const int fd = atoi(d->d_name);

		if (!connection(fd, address, sizeof address) || is_inherited(d->d_name))
			continue;
		snprintf(entry, sizeof entry, "%s %s, ", owner(all, address), address);
		if (!strstr(text, entry))
			used += (size_t)snprintf(text + used, nbytes - used, "%s", entry);
	}
	if (used > 0)
		text[(used < nbytes ? used : nbytes) - 2] = '\0';
	if (all)
		freeifaddrs(all);
	if (fds)
		closedir(fds);
}

void mu_conf_interface_address(const struct conf *v, char *text, size_t nbytes)
{
	const char *name = mu_conf_interface(v);
	char address[INET6_ADDRSTRLEN];

	*text = '\0';
	if (!name)
		list_used(text, nbytes);
	else if (find(name, "", address, sizeof address) == MU_OK)
		snprintf(text, nbytes, "%s %s", name, address);
	else
		mu_trace_clear(); /* it existed when it was checked */
}

void mu_conf_interface_report(const struct conf *v)
{
	const char *name = mu_conf_interface(v), *has;
	char value[IF_NAMESIZE + 1], address[INET6_ADDRSTRLEN];

	if (name && name == v->site.interface && find(name, "", address, sizeof address) != MU_OK) {
		mu_trace_clear();
		mu_log_info("interface %s: this host has none of that name, and this job needs no "
			    "other host: it is not used",
			    name);
		return;
	}
	for (size_t i = 0; name && i < N_VARIABLES; i++) {
		value_for(i, name, value, sizeof value);
		has = getenv(variables[i].name);
		if (has && strcmp(has, value) != 0)
			mu_log_warn("interface %s: %s is set to %s, which takes precedence", name,
				    variables[i].name, has);
	}
}

enum mu_status mu_conf_interface_check(const struct conf *v, int nodes)
{
	enum mu_status st = MU_OK;
	const char *name = mu_conf_interface(v);
	const bool of_site = name && name == v->site.interface;
	char address[INET6_ADDRSTRLEN];

	if (name && !(of_site && nodes == 1))
		st = find(name,
			  of_site                ? "interface "
			  : name == v->interface ? "--interface "
						 : "DMLC_INTERFACE=",
			  address, sizeof address);
	if (st != MU_OK && of_site)
		mu_trace_prefix("site file %s: ", v->site.path);
	return st;
}

/* For MPI_Init. Values that the user has set stay. */
static void set_variables(const char *name)
{
	char value[IF_NAMESIZE + 1];

	for (size_t i = 0; name && i < N_VARIABLES; i++) {
		value_for(i, name, value, sizeof value);
		setenv(variables[i].name, value, 0);
	}
}

enum mu_status mu_conf_choose_interface(int argc, char *const argv[])
{
	enum mu_status st = MU_OK;
	struct mu_options o = {0};
	struct conf_arguments a = {.argc = 0};
	const struct conf_owner none = {.network = NULL};
	struct conf v;

	MU_TRY(mu_conf_options_open(&o, &v, &none));
	if (mu_conf_arguments_read(&a, argc, argv) != MU_OK || mu_conf_site_read(&a) != MU_OK) {
		mu_trace_clear();
		goto out;
	}
	if (mu_conf_site_apply(&o, &v, a.site->argc, a.site->argv) != MU_OK)
		mu_trace_clear();
	mu_options_scan(&o, a.argc, a.argv); /* mu_train reports what is wrong */
	if (mu_conf_asks(&v))
		goto out;
	MU_TRY(mu_conf_interface_check(&v, 2));
	set_variables(mu_conf_interface(&v));
out:
	mu_conf_arguments_release(&a);
	mu_options_release(&o);
	return st;
}
