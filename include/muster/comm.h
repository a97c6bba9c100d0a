/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm: members and nodes of a job, waiting, collectives, and memory that ranks of a node share.
 *
 * Ranks of the given communicator are workers or servers. Nodes are ordered by their lowest rank.
 * Servers are spread over the nodes round-robin in node order, the last rank of a node first; or
 * packed: they fill the last node, then the node before it. Worker w is the w-th rank that is not a
 * server, server s the s-th rank that is one.
 *
 * Ranks may outnumber cores, so no call here blocks inside MPI. mu_wait* poll, yield the core, and
 * sleep in short naps when a wait grows long. The collectives below are non-blocking MPI
 * collectives that mu_wait completes. One thread at a time calls MPI (MPI_THREAD_SERIALIZED; the
 * main thread if MPI does not provide that).
 */
#ifndef MUSTER_COMM_H
#define MUSTER_COMM_H

#include <mpi.h>
#include <muster/base.h>

MU_BEGIN_C

/* MU_TRY for an MPI call: the message holds the call and MPI_Error_string. */
#define MU_MPI(call) MU_TRY(mu_from_mpi((call), #call, __FILE__, __LINE__))
enum mu_status mu_from_mpi(int mpi_error, const char *call, const char *file, int line);

/* A count for MPI. Callers cut messages at MU_MESSAGE_MAX elements; a count above INT_MAX is a bug
 * of Muster. */
#define MU_MESSAGE_MAX ((size_t)1 << 28) /* floats: 1 GiB */
int mu_count(size_t n);

struct mu_members;

/* ---- the world: for programs that own MPI, such as trainer and tests ---- */

/*
 * Start MPI (serialized, at least funneled) and return a duplicate of the world communicator whose
 * errors are returned. A signal SIGXFSZ is ignored, unless the program handles it: writes return an
 * error. MU_ERR_USAGE: another MPI's launcher started the processes, so each process is alone.
 */
enum mu_status mu_world_open(int *argc, char ***argv, MPI_Comm *world);
/*
 * Before MPI_Init. _launched: did a launcher start this process? _spans_hosts: does the launcher
 * say that the job has ranks on other hosts? Both know the common launchers only. _refuse: end the
 * job because of an error of this host, which one of its ranks reports; does not return.
 */
bool mu_world_launched(void);
bool mu_world_spans_hosts(void);
/* Has it started at least so many ranks a core on this host? As the two above. */
bool mu_world_crowds(int times);
void mu_world_refuse(enum mu_status st, const char *program) __attribute__((noreturn));
/*
 * Where Hydra started this process, SIGTERM comes to it when Hydra's process on this host ends: the
 * ranks would go on without a launcher, and nobody would read their output. _lost: it has ended.
 */
void mu_world_follow_launcher(void);
bool mu_world_lost_launcher(void);
/* End a program: wait for all ranks, finalize MPI, return exit_status. Where this MPI cannot be
 * finalized safely (world.c), the process exits at once with that status. */
int mu_world_close(MPI_Comm *world, int exit_status);
/* The same if the launcher may have passed on a signal; works around Hydra (world.c). */
int mu_world_close_signalled(MPI_Comm *world, int exit_status);
/* End the whole job now with this exit status. Does not return. */
void mu_world_abort(int exit_status) __attribute__((noreturn));
/* 0 for MU_OK, 2 for MU_ERR_USAGE, 1 for all other errors. */
int mu_world_exit_status(enum mu_status st);
/* Print the error on stderr (mu_trace_report), and in files of the log; with rank and role but for
 * MU_ERR_USAGE, and unless rank is negative: a process that is alone. */
void mu_world_report(enum mu_status st, const char *program, int rank, const char *role);
/* End the job by an error that the other ranks may not know of: report it, then abort. */
void mu_world_fail(enum mu_status st, const char *program, int rank, const char *role)
	__attribute__((noreturn));
/*
 * Training has failed, and other ranks cannot know of it. cause: MU_ERR_PEER if another rank has
 * raised the alarm; else an error of this rank, which tells all others; their waits, and _check
 * between two steps, return MU_ERR_PEER. Before a rank ends, it completes what it has to save:
 * _busy asks the others to wait for that. _nobody_comes: a rank was silent for the time limit, and
 * nobody has asked so since, some seconds after `since`: who waits for the others need not go on.
 * saves: worker 0 saves files, which it may have to complete. mu_world_tell then says that this
 * rank is done, and waits for the others, some seconds at most. Memory of messages stays from now
 * on (mu_memory_keep).
 */
void mu_alarm_raise(const struct mu_members *m, enum mu_status cause, bool saves);
enum mu_status mu_alarm_check(const struct mu_members *m);
void mu_alarm_busy(void);
bool mu_alarm_nobody_comes(double since);
/* Of mu_world_tell: _told_elsewhere: does another rank report its error? */
void mu_alarm_done(void);
bool mu_alarm_is_told_elsewhere(void);
void mu_alarm_wait(void);
/* The report of mu_world_fail: when the other ranks that know more have had their turn. */
void mu_world_tell(enum mu_status st, const char *program, int rank, const char *role);

/* May any thread call MPI, one at a time? */
bool mu_comm_serialized(void);
/* Rank of the caller in comm, and size of comm. Not collective. */
enum mu_status mu_comm_rank(MPI_Comm comm, int *rank, int *size);
/* First line of the MPI library's version, e.g. "MPICH Version: 4.0.2". Not collective. */
void mu_comm_version(char *text, size_t nbytes);
/* Warn where variables of Slurm, torchrun or MXNet say that there are other ranks than these. */
void mu_comm_report_launcher(const struct mu_members *m);
/* Does MPI accept pointers to NVIDIA GPU memory? "yes", "no", "it does not say"; before MPI_Init a
 * text that says so. */
const char *mu_comm_gpu_support(void);

/* ---- limits of waits ---- */

/*
 * Seconds; 0 = no limit. A wait without progress for `warn` seconds is reported on stderr, and
 * again after each further `warn` seconds. A wait without progress for `timeout` seconds is
 * MU_ERR_TIMEOUT; the error names what is missing and the ranks that owe it. `setup` is the limit
 * for ranks of other nodes in waits where only some ranks work, however long: mu_meet. After an
 * error other ranks may wait for this rank for ever, so the program must end the job
 * (mu_world_fail).
 *
 * Progress is any message that arrives, and any rank of the same node that computes or passes from
 * one wait to another. Ranks of other nodes cannot be observed: the limit must exceed the longest
 * time between two of their messages. A rank that a signal has stopped for `timeout` ends the job
 * as soon as any rank of its node waits for anything. Time in which the waiting rank itself could
 * not run does not count.
 *
 * One rank reports. If it can be determined, the rank that ends the job is one that waits for a
 * rank that is not itself waiting. Other ranks of the node, and those of each following node, do so
 * some seconds later if the job has not ended.
 */
struct mu_limits {
	double warn, timeout, setup;
};
#define MU_WARN_SECONDS 30.0
#define MU_TIMEOUT_SECONDS 300.0
#define MU_SETUP_SECONDS 3600.0

/* Set the limits of collective calls on comm, and of waits of members made from it afterwards.
 * Defaults: the three above. Not collective, but all ranks should set the same limits. */
enum mu_status mu_comm_set_limits(MPI_Comm comm, const struct mu_limits *limits);

/* ---- members ---- */

/* A collective, and what its waits are called. */
struct mu_meeting {
	MPI_Comm comm;
	const char *what;
	bool setup; /* see struct mu_awaited */
};

enum mu_role { MU_ROLE_WORKER, MU_ROLE_SERVER };
const char *mu_role_name(enum mu_role role); /* "worker" */

/* Where the ranks are: nodes, cores. */
struct mu_topology {
	MPI_Comm node; /* ranks of my node, in the order of struct mu_members; see mu_comm_split */
	int num_nodes;
	int my_node;
	int *node_of;             /* node number of every rank */
	int *slot_of;             /* rank in my node of every rank, -1 on other nodes */
	int node_rank, node_size; /* in node */
	int node_worker;          /* my number among the workers of my node */
	int node_num_workers;
	int *worker_slots; /* rank in node of these workers */
	int first_worker;  /* the lowest of them; -1: a node of servers */
	int my_cores;      /* cores that the launcher allows this rank */
	int node_cores;    /* cores of this node: the union of its ranks' affinities */
	bool bound;        /* the launcher bound this rank to fewer cores than the node has */
	/* Workers of this node, this one included, that share exactly my cores, if these are fewer
	 * than the workers and fewer than the cores of the machine; else 0. */
	int crowd, machine_cores;
	char host[64];
	char (*hosts)[64]; /* of every rank */
};

/*
 * Who takes part: a value of one generation. A run that goes on after an error makes a new one
 * (and stores, windows and inputs of it), with ranks that may be others: nobody keeps the number of
 * a rank beyond the members that gave it.
 */
struct mu_members {
	MPI_Comm comm;  /* all: a duplicate of the caller's communicator, errors returned */
	MPI_Comm peers; /* ranks of my role, in the order of comm; see mu_comm_split */
	int rank, size; /* in comm */
	enum mu_role role;
	int index; /* my number among the workers or among the servers */
	int num_workers, num_servers;
	int *worker_ranks;   /* in comm, of worker w */
	int *server_ranks;   /* in comm, of server s */
	unsigned generation; /* 0 from _init; counted by the caller */
	bool dropped;        /* see mu_members_drop */
	struct mu_topology topology;
	struct mu_window *wake; /* see mu_wake; private */
	struct mu_watch *watch; /* see struct mu_limits; private */
};

/* One per node, but no more than a quarter of the ranks, and at least one. */
enum { MU_SERVERS_DEFAULT = -1 };
enum mu_placement { MU_PLACEMENT_SPREAD, MU_PLACEMENT_PACKED };

/*
 * Collective over comm. num_servers: 0 for stores without servers, MU_SERVERS_DEFAULT or a number.
 * MU_ERR_USAGE with the counts: no worker would remain. MU_ERR_ARGUMENT: ranks passed different
 * numbers or placements. The caller's communicator is not changed.
 */
enum mu_status mu_members_init(struct mu_members *m, MPI_Comm comm, int num_servers,
			       enum mu_placement placement);
/* The same in two steps: ranks and places, then the roles, for callers whose number of servers
 * depends on the nodes. */
enum mu_status mu_members_find(struct mu_members *m, MPI_Comm comm);
enum mu_status mu_members_share_out(struct mu_members *m, int num_servers,
				    enum mu_placement placement);
int mu_members_usual_servers(const struct mu_members *m); /* MU_SERVERS_DEFAULT; after _find */
/* Collective over m->comm, but for members that were dropped. */
void mu_members_release(struct mu_members *m);
/*
 * After an error of a rank that does not answer: from here to mu_members_release(m) whatever this
 * process closes or frees is closed without the others, by any call of Muster that is otherwise
 * collective. Communicators, and memory that messages may use, stay until the process ends. For
 * processes with one value of struct mu_members. Not collective.
 */
void mu_members_drop(struct mu_members *m);

/* Is there one worker? */
bool mu_members_alone(const struct mu_members *m);
/* Is this rank worker 0, which writes files and the log, and decides what others follow? */
bool mu_members_lead(const struct mu_members *m);
/* Rank of worker w or server s in m->comm. */
int mu_worker_rank(const struct mu_members *m, int w);
int mu_server_rank(const struct mu_members *m, int s);
/* Role of a rank, and its number there. */
enum mu_role mu_members_role(const struct mu_members *m, int rank, int *index);
/* Write "worker 2 (rank 4, node17)" into text; returns text. */
const char *mu_members_who(const struct mu_members *m, char *text, size_t nbytes);
/* The same for any rank of m->comm, and for a worker. */
const char *mu_members_name(const struct mu_members *m, int rank, char *text, size_t nbytes);
const char *mu_worker_name(const struct mu_members *m, int w, char *text, size_t nbytes);
/* "2 workers, 1 server". */
const char *mu_members_text(const struct mu_members *m, char *text, size_t nbytes);
/* nbytes of worker 0 to all ranks. Collective over m->comm. */
enum mu_status mu_members_follow(const struct mu_members *m, void *data, size_t nbytes);
/*
 * Collective over the ranks of the caller's role. _agree: as mu_agree. _gather: *all is new memory
 * with nbytes of each of *n, in their order. _share: nbytes of the first to all. _meet: a barrier.
 * _dup and _split: as mu_comm_dup and mu_comm_split, in their order.
 */
enum mu_status mu_peers_agree(const struct mu_members *m, enum mu_status st);
enum mu_status mu_peers_gather(const struct mu_members *m, const void *mine, size_t nbytes,
			       void **all, int *n);
enum mu_status mu_peers_share(const struct mu_members *m, void *data, size_t nbytes);
enum mu_status mu_peers_reduce(const struct mu_members *m, long *values, size_t n, MPI_Op op);
enum mu_status mu_peers_sum(const struct mu_members *m, double *values, size_t n);
enum mu_status mu_peers_meet(const struct mu_members *m);
enum mu_status mu_peers_dup(const struct mu_members *m, MPI_Comm *out);
enum mu_status mu_peers_split(const struct mu_members *m, int colour, MPI_Comm *out);
/* All that wait in a collective of these ranks, for mu_meeting_enter. Not collective. */
struct mu_meeting mu_peers_meeting(const struct mu_members *m, const char *what);

/*
 * Collective over comm, with its limits; errors returned. Those of _split (by colour, then key) and
 * duplicates of them, are for Muster's calls alone: MPI takes each for one of this rank. _close:
 * collective over *comm, but where memory of messages is kept (mu_members_drop): it is let go.
 */
enum mu_status mu_comm_dup(MPI_Comm comm, MPI_Comm *out, const char *what);
enum mu_status mu_comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *out);
void mu_comm_close(MPI_Comm *comm);

/*
 * Start time of a process of this host, in clock ticks since boot. 0: no such process, it has
 * ended, or the kernel does not say. Number and start time identify a process until the host
 * reboots. Not collective.
 */
unsigned long long mu_process_started(long pid);
/*
 * Let the calling thread run on all of OpenMP's places, where OMP_PROC_BIND or the like has bound
 * it to the first one. No effect without places. Call it first in main: processes that are started,
 * and mu_members_place, count the cores of this thread. Not collective.
 */
void mu_place_unbind(void);
/*
 * Number of threads of this rank: OMP_NUM_THREADS if set, otherwise a worker that its launcher
 * bound gets as many threads as it has cores; other workers share the cores of the node evenly, at
 * most SLURM_CPUS_PER_TASK each if set, less spare_cores, at least 1. Servers get 1. At most
 * OMP_THREAD_LIMIT. Pins a worker that the launcher did not bind to its own cores, if there are
 * enough (disjoint runs of cores in rank order). Servers are not pinned. Call before any thread is
 * created. Collective over node.
 */
enum mu_status mu_members_place(const struct mu_members *m, int spare_cores, int *n_threads);
/*
 * Divide the n_threads threads of a rank evenly over n_groups groups; group g gets *mine, at least
 * 1. If the calling thread may run on exactly n_threads cores, and there are enough for one per
 * group, the thread and the threads that it creates are pinned to the cores of group g.
 * _places_save stores the affinity of the calling thread, _places_restore sets and frees it (NULL:
 * no effect). Not collective.
 */
enum mu_status mu_place_group(int g, int n_groups, int n_threads, int *mine);
struct mu_places;
enum mu_status mu_places_save(struct mu_places **out);
void mu_places_restore(struct mu_places *places);

/* ---- waits ---- */

/* Wait until all requests are complete. Inactive and null requests count as complete. what names
 * the wait in messages ("bucket 4 from server 1"). */
enum mu_status mu_wait_all(int n, MPI_Request *requests, const char *what);
/* The same if the sender calls mu_wake for this rank after it has completed the requests; sleeps
 * are longer. */
enum mu_status mu_wait_woken(const struct mu_members *m, int n, MPI_Request *requests,
			     const char *what);
/* Wake a rank of m->comm that sleeps in a wait, if it is on this node, because data was sent to it.
 * Cheap. */
void mu_wake(const struct mu_members *m, int rank);
/* For a wait loop of the caller's own: _init; then _nap and _check after every poll without a
 * result, and _reset after a poll with one. members: not NULL if senders call mu_wake. */
struct mu_waiter {
	const struct mu_members *members;
	struct mu_watch *watch; /* limits of the wait; NULL = the defaults */
	double since;           /* start of the present run of empty polls, 0 = none */
	double stirred;         /* that start, or the last wake or busy poll after it */
	double still;           /* time of the last progress */
	double last, awake;     /* start and end of the last nap */
	double next;            /* time of the next check of the limits */
	double told;            /* seconds of waiting reported so far */
	uint32_t count;         /* wakes seen so far */
	bool without_mpi; /* set after _init: another thread may be in MPI, this one must not */
	/*
	 * Set after _init if all awaited ranks are on this node, send no messages, and call
	 * mu_wake. Then this rank sleeps longer, and polls only for a moment if ranks outnumber
	 * cores.
	 */
	bool only_woken;
};
void mu_waiter_init(struct mu_waiter *w, const struct mu_members *m);
void mu_waiter_reset(struct mu_waiter *w);
void mu_waiter_nap(struct mu_waiter *w);

/* Waits between begin and end belong to this wait: other ranks see this rank in one wait. */
void mu_waiter_nest(struct mu_waiter *w, bool begin);

#define MU_AWAITED_MAX 64
/* What a rank waits for, and from whom. */
struct mu_awaited {
	char what[128];            /* "bucket 4" */
	size_t n;                  /* number of ranks; the first MU_AWAITED_MAX are stored */
	int ranks[MU_AWAITED_MAX]; /* in the members' comm */
	bool somebody; /* n = 0, but some unknown rank owes something */
	bool direct;   /* the ranks depend on no other rank for what they owe */
	/* Ranks of other nodes have no limit, or that of set-up; only ranks that are seen to stand
	 * still have the usual one. */
	bool patient, setup;
};
void mu_awaited_add(struct mu_awaited *a, int rank);
/* All other ranks of my role. */
void mu_awaited_peers(struct mu_awaited *a, const struct mu_members *m);
/* Fill in *a, which is zero. No ranks and not somebody: nobody owes anything. */
typedef void mu_awaited_fn(const void *context, struct mu_awaited *a);
/*
 * Check the limits (struct mu_limits). fn NULL: an unknown rank owes what the text in context says.
 */
enum mu_status mu_waiter_check(struct mu_waiter *w, mu_awaited_fn *fn, const void *context);

/*
 * For a loop around non-blocking collectives of the caller's own: call _enter at the start; it sets
 * w->watch. mu_awaited_meeting, with the meeting as context, names the ranks that have not arrived.
 */
void mu_meeting_enter(const struct mu_meeting *meeting, struct mu_waiter *w);
mu_awaited_fn mu_awaited_meeting;

/* ---- collectives whose waits yield the core. Collective over comm. ---- */

enum mu_status mu_barrier(MPI_Comm comm);
/* A barrier for ranks that arrive at very different times: ranks of other nodes have the limit of
 * set-up. */
enum mu_status mu_meet(MPI_Comm comm);
enum mu_status mu_bcast(void *data, size_t nbytes, int root, MPI_Comm comm);
enum mu_status mu_allreduce_double(double *values, size_t n, MPI_Op op, MPI_Comm comm);
enum mu_status mu_allreduce_long(long *values, size_t n, MPI_Op op, MPI_Comm comm);
/* Sum in the order of MPI_Allreduce; for comparisons. n is at most INT_MAX. */
enum mu_status mu_allreduce_float(const float *in, float *out, size_t n, MPI_Comm comm);
enum mu_status mu_allgather(const void *mine, void *all, size_t nbytes_each, MPI_Comm comm);
/* all: on the root nbytes_each bytes of every rank in rank order; NULL elsewhere. */
enum mu_status mu_gather(const void *mine, void *all, size_t nbytes_each, int root, MPI_Comm comm);
/*
 * Agree on a status: MU_OK if all ranks passed MU_OK. Otherwise a rank that failed keeps its own
 * status and trace, and the others get MU_ERR_PEER with the lowest rank that failed;
 * mu_trace_known is then the size of comm. A rank that failed waits a moment only: where others do
 * not come, because they wait for it elsewhere, mu_trace_known stays 0, and the rank must end the
 * job.
 */
enum mu_status mu_agree(enum mu_status st, MPI_Comm comm);
/* mu_agree after work that only some ranks have, however long it takes. */
enum mu_status mu_agree_late(enum mu_status st, MPI_Comm comm);
/* All ranks have an error, of their own or MU_ERR_PEER: *reporter is the lowest with one of its
 * own, or the number of ranks. false: not all come. */
bool mu_agree_reporter(enum mu_status st, MPI_Comm comm, int *reporter);

/*
 * Minimum of one value per rank without waiting: every rank calls _begin when it has its value,
 * then _test now and then; once *done is true, `least` is the minimum. One vote at a time. The
 * struct must not move between _begin and *done. _open is collective over the ranks of a role.
 */
struct mu_vote {
	MPI_Comm comm;
	MPI_Request request;
	int mine, least;
};
enum mu_status mu_vote_open(struct mu_vote *v, const struct mu_members *m);
void mu_vote_close(struct mu_vote *v);
enum mu_status mu_vote_begin(struct mu_vote *v, int value);
enum mu_status mu_vote_test(struct mu_vote *v, bool *done);

/*
 * Check that all ranks of comm passed the same value, in builds with --enable-paranoid; else no
 * effect. A difference is MU_ERR_ARGUMENT on all ranks, with the value's name and this rank's
 * value. Collective over comm.
 */
#ifdef MU_PARANOID
#define MU_SAME(comm, value) MU_TRY(mu_comm_same((comm), (long)(value), #value, __FILE__, __LINE__))
#else
#define MU_SAME(comm, value) ((void)0)
#endif
enum mu_status mu_comm_same(MPI_Comm comm, long value, const char *name, const char *file,
			    int line);

/*
 * Bandwidth of large messages between the first and the last rank of comm, in bytes/s per
 * direction, both directions at once; the best of several trials, in a few hundredths of a second.
 * On a slow link the messages are smaller, so that they end in about a second. Waits have the limit
 * of set-up. 0 for one rank. Collective over comm.
 */
enum mu_status mu_comm_link(MPI_Comm comm, double *bytes_per_second);

/* Does standard error of this rank reach a terminal: directly, or through the launcher if it runs
 * on this host? */
bool mu_comm_on_terminal(void);
/* Does its standard output reach a file? */
bool mu_comm_output_to_file(void);
/* May lines on standard error have colours: is it a terminal, and NO_COLOR not set? */
bool mu_comm_colours(void);

/* Add *seconds to now() of this rank to get now() of rank 0. Accuracy: half of the shortest round
 * trip. Ranks of one host share the clock of mu_now and need no offset. Collective over comm. */
enum mu_status mu_clock_offset(MPI_Comm comm, double (*now)(void), double *seconds);

/* ---- memory that the ranks of a node share ---- */

struct mu_window;

/*
 * A window: nbytes of memory for this rank (0 allowed) beside that of the other ranks of the node,
 * zeroed and page-aligned. If the node has no room (/dev/shm), *out is NULL on all of its ranks and
 * the status is MU_OK. Collective over t->node.
 */
enum mu_status mu_window_open(struct mu_window **out, const struct mu_topology *t, size_t nbytes);
/* NULL is allowed. Not collective: other ranks keep their mappings. */
void mu_window_close(struct mu_window *w);
/* Start of the memory of a rank of the node. */
void *mu_window_of(const struct mu_window *w, int node_rank);

/* ---- the log of messages ---- */

/*
 * What a store logs. CONNECTIONS: the role of every rank, how it reaches each of the others, and
 * what lies on it. MESSAGES: also one line per message (also for notes in shared memory): time
 * since the store was made, direction, rank, contents, bytes, and on workers, for a bucket that
 * comes back, the seconds since it left. ENVIRONMENT: PS_VERBOSE of rank 0: 0, 1 or 2, as in MXNet.
 */
enum mu_verbose {
	MU_VERBOSE_ENVIRONMENT,
	MU_VERBOSE_NO,
	MU_VERBOSE_CONNECTIONS,
	MU_VERBOSE_MESSAGES,
};

MU_END_C

#endif
