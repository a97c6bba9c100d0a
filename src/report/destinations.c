/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the log goes. Standard error has the plain form if it is a terminal, else MXNet's; --log
 * FILE and a file to which standard output was sent (trainer > train.log) have MXNet's.
 */
#include "report.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/storage.h>

enum { FOLDER_BYTES = 4096 };

static enum mu_status make_folder(const char *path)
{
	enum mu_status st = MU_OK;
	const char *end = strrchr(path, '/');
	char folder[FOLDER_BYTES];

	if (!end || end == path)
		goto out;
	if ((size_t)(end - path) >= sizeof folder)
		MU_FAIL(MU_ERR_IO, "--log %.60s...: the path is too long", path);
	memcpy(folder, path, (size_t)(end - path));
	folder[end - path] = '\0';
	MU_TRY(mu_folder_make(folder));
out:
	return st;
}

/* A log begins with a date or a letter: other files are not continued. */
static enum mu_status check_log(const char *path)
{
	enum mu_status st = MU_OK;
	unsigned char first;

	if (mu_stream_head(path, &first, 1) == 1 && !isprint(first) && first != '\n' &&
	    first != '\033')
		MU_FAIL(MU_ERR_USAGE, "--log %s: is there, and is no log", path);
out:
	return st;
}

static enum mu_status add_file(struct mu_log_config *config, const char *path)
{
	enum mu_status st = MU_OK;

	MU_TRY(make_folder(path));
	st = mu_stream_append(&config->stream, path, true);
	if (st != MU_OK)
		mu_trace_prefix("--log ");
	MU_TRY(st);
	st = check_log(path);
	if (st != MU_OK)
		fclose(config->stream);
	MU_TRY(st);
	MU_TRY(mu_log_add_file(config));
out:
	return st;
}

/* Standard output itself stays open: other parts print there. */
static enum mu_status add_output(struct mu_log_config *config)
{
	enum mu_status st = MU_OK;
	const int fd = dup(STDOUT_FILENO);

	config->stream = fd < 0 ? NULL : fdopen(fd, "a");
	if (config->stream)
		MU_TRY(mu_log_add_file(config));
out:
	return st;
}

enum mu_status mu_report_log_open(const struct conf *v, const struct mu_options *options,
				  const struct mu_members *m)
{
	enum mu_status st = MU_OK;
	const bool server = m->role == MU_ROLE_SERVER, worker_0 = mu_members_lead(m);
	const bool plain = mu_report_is_plain(v);
	char node[32] = "", who[32] = "";
	struct mu_log_config stream = {.plain = plain, .colour = mu_comm_colours()}, file;

	if (v->log_prefix == CONF_PREFIX_NODE)
		snprintf(node, sizeof node, "%s[%d]", server ? "Server" : "Node", m->index);
	if (!worker_0)
		snprintf(who, sizeof who, "%s %d:", mu_role_name(m->role), m->index);
	stream.level = v->quiet                   ? MU_LOG_RESULT
		       : plain && v->verbose == 0 ? MU_LOG_INFO
						  : MU_LOG_DETAIL;
	stream.time = v->log_time != 0 && (!plain || mu_options_given(options, "log-time"));
	stream.prefix = plain && !mu_options_given(options, "log-prefix") ? who : node;
	mu_log_configure(&stream);
	if (!worker_0 || m->generation > 0) /* a later run goes on in the files */
		goto out;
	file = (struct mu_log_config){
		.level = MU_LOG_DETAIL, .time = v->log_time != 0, .prefix = node};
	if (v->log_file)
		MU_TRY(add_file(&file, v->log_file));
	if (mu_comm_on_terminal() && mu_comm_output_to_file())
		MU_TRY(add_output(&file));
out:
	return st;
}
