/* How all ranks learn of a failure. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Fail the membership: keep the first error, raise the member's abort flag, wake waiters, send the
 * error to the neighbours. `rank`: whom it is about; -1: no single rank. */
__attribute__((format(printf, 4, 5))) void tt_tree_fail(struct tt_bootstrap *bootstrap, int rank,
                                                        ncclResult_t rc, const char *fmt, ...);
/* Handle a FAIL frame of a neighbour, and pass it on to the other neighbours. */
void tt_failure_frame(struct tt_bootstrap *bootstrap, struct tt_conn *conn,
                      const unsigned char *bytes, size_t len);
/* The connection to `peer` ended without goodbye. */
void tt_failure_lost(struct tt_bootstrap *bootstrap, int peer, const char *why);
/* Send the error to a child that connects after it. */
void tt_failure_repeat(const struct tt_bootstrap *bootstrap, struct tt_conn *conn);
/* Describe a rank for a message: number, host, pid. During the init of a child also its number in
 * the parent, which the caller knows. */
enum { TT_WHO_BYTES = TT_HOST_BYTES + 96 };
void tt_failure_who(const struct tt_bootstrap *bootstrap, int rank, char *text, size_t text_bytes);
/* Log the error once, in the caller's thread; returns its code. */
ncclResult_t tt_failure_report(struct tt_bootstrap *bootstrap);
/* Message of a rank that cannot take part in making a child. It goes over the parent to the child's
 * members: salt 24 bytes, sentence. Its tag is 0xffff8000 or above. */
#define TT_CHILD_FAIL_BYTES (24 + TT_SENTENCE_BYTES)
uint32_t tt_failure_child_tag(const uint64_t salt[3]);
void tt_failure_child_pack(const uint64_t salt[3], const char *sentence,
                           unsigned char bytes[TT_CHILD_FAIL_BYTES]);
/* During the init of a child: an error in the parent's tree, or of a member that has not joined the
 * child yet, ends the init. */
void tt_failure_watch_parent(struct tt_bootstrap *bootstrap);
/* Report to the others, once, that this rank has left, unless all have. */
void tt_failure_ended(struct tt_bootstrap *bootstrap);
/* The process exits with that code: report it to the neighbours of all memberships. */
void tt_failure_exit(int code);
