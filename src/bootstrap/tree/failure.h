/* How all ranks learn of a failure. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* First error wins; raises the member's abort flag, wakes waiters, tells the
 * neighbours. */
__attribute__((format(printf, 4, 5))) void tt_tree_fail(struct tt_bootstrap *bootstrap, int rank,
                                                        ncclResult_t rc, const char *fmt, ...);
/* A neighbour's words; they go on to the others. */
void tt_failure_frame(struct tt_bootstrap *bootstrap, struct tt_conn *conn,
                      const unsigned char *bytes, size_t len);
/* The connection to `peer` ended without goodbye. */
void tt_failure_lost(struct tt_bootstrap *bootstrap, int peer, const char *why);
/* To a child that connects after the error. */
void tt_failure_repeat(const struct tt_bootstrap *bootstrap, struct tt_conn *conn);
/* A rank in words, with what is known of it: of a communicator that is being made of another one,
 * its number in both, as the caller knows it by the old one. */
enum { TT_WHO_BYTES = TT_HOST_BYTES + 96 };
void tt_failure_who(const struct tt_bootstrap *bootstrap, int rank, char *text, size_t text_bytes);
/* Log the error once, in the caller's thread; returns its code. */
ncclResult_t tt_failure_report(struct tt_bootstrap *bootstrap);
/* What a rank that cannot take part in making a child sends its members, over the parent: salt 24,
 * sentence; and under which tag (0xffff8000 and above). */
#define TT_CHILD_FAIL_BYTES (24 + TT_SENTENCE_BYTES)
uint32_t tt_failure_child_tag(const uint64_t salt[3]);
void tt_failure_child_pack(const uint64_t salt[3], const char *sentence,
                           unsigned char bytes[TT_CHILD_FAIL_BYTES]);
/* A child is being born: what goes wrong in the parent's tree, or with another member before it
 * meets the others, ends the init. */
void tt_failure_watch_parent(struct tt_bootstrap *bootstrap);
/* Report to the others, once, that this rank has left, unless all have. */
void tt_failure_ended(struct tt_bootstrap *bootstrap);
/* The process exits with that code: report it to the neighbours of all memberships. */
void tt_failure_exit(int code);
