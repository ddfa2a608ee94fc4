/* Types of frames, one number each in the whole room. */
#pragma once

#define TT_SENTENCE_BYTES 640 /* a reason in words, with its final zero */

/* On connections to a root. */
enum tt_root_frame {
    TT_FRAME_JOIN = 1,   /* rank -> root: struct tt_join */
    TT_FRAME_ASSIGNMENT, /* root -> rank: struct tt_root_reply */
    TT_FRAME_REFUSE,     /* either way: code, sentence */
    TT_FRAME_JOINED,     /* rank -> root: connected to the tree; the last frame */
    TT_FRAME_NONCE,      /* head -> its root: what the root above has chosen, 32 */
    TT_FRAME_ROOT_RANK,  /* root -> rank: 4, the rank in whose process it is */
    TT_FRAME_RELAYED,    /* rank -> root: as REFUSE, the reason of another rank */
    TT_FRAME_OVERDUE,    /* head -> its root: all others wait for this block */
    TT_FRAME_DECLINE,    /* rank -> root, in place of JOIN: it does not come */
};

enum tt_tree_frame {
    TT_FRAME_UP = 16, /* seq 8, bytes 4: contributions of a subtree, preorder */
    TT_FRAME_DOWN,    /* seq 8: the whole table in rank order */
    TT_FRAME_MESSAGE, /* source 4, target 4, tag 4: routed */
    TT_FRAME_FAIL,    /* rank 4, code 4, kind 4, begun 4, sentence: flooded */
    TT_FRAME_DONE,    /* up: my subtree has left */
    TT_FRAME_BYE,     /* down: all ranks have left; or: this rank leaves now, without error */
    TT_FRAME_LATE,    /* seq 8: timed out waiting for the receiver's subtree */
    TT_FRAME_HERE,    /* seq 8: answer: alive, and asking the own subtree */
    TT_FRAME_SECOND,  /* number 8, first on a second connection: of the frame that follows */
};

enum tt_local_frame {
    TT_FRAME_DESCRIPTOR = 64
}; /* on local sockets: a word of 8 bytes; the descriptor is sent with it */
