/* Ranks that choose differently hang, so all ranks of a communicator must take new rules at the
 * same call. They count their calls in a shared segment. A rank that sees that the file changed
 * puts its text there, and the first call that no rank has made yet as the one from which it holds.
 * Calls of one communicator come in the same order on all ranks, so that is the same call for all.
 *
 * A change is believed when two looks a second apart see the same file: half-written ones are not
 * read. What is larger than the segment holds for later communicators only. */
#include "reload.h"

#include "file.h"

#include "tuner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT_MAGIC = 0x74754e31, TEXT_MOST = 256 << 10 };

struct stamp { /* differs between states of the file */
    uint64_t inode, size, sec, nsec;
};

struct segment { /* shared by the ranks; guarded by its lock once magic is set */
    uint32_t magic;
    pthread_mutex_t lock;
    size_t attached, left;  /* ranks that ever came, and went */
    uint64_t most_calls;    /* of the rank that is ahead */
    uint64_t generation;    /* of the text; 0: there never was one */
    uint64_t from_call;     /* the text holds from this one on */
    size_t taken;           /* ranks that have the text */
    struct stamp published; /* the newest state that a process has dealt with */
    size_t text_bytes;
    char text[TEXT_MOST];
};

struct tuner_reload {
    struct segment *segment; /* mapped */
    char path[PATH_MAX];
    char name[64]; /* of the shared memory */
    size_t nranks;
    uint64_t calls, generation;
    time_t looked_sec;
    struct stamp glimpse; /* at the last look */
};

static bool look(const char *path, struct stamp *stamp)
{
    struct stat st;
    *stamp = (struct stamp){0, 0, 0, 0};
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return false;
    *stamp = (struct stamp){(uint64_t)st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                            (uint64_t)st.st_mtim.tv_nsec};
    return true;
}

static bool same(const struct stamp *a, const struct stamp *b)
{
    return a->inode == b->inode && a->size == b->size && a->sec == b->sec && a->nsec == b->nsec;
}

static time_t now_sec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

/* A rank that dies with the lock leaves counters behind that are at worst one call old. */
static bool take_lock(struct segment *segment)
{
    int err = pthread_mutex_lock(&segment->lock);
    if (err == EOWNERDEAD) err = pthread_mutex_consistent(&segment->lock);
    return err == 0;
}

/* What the first rank reads holds for all: the file may change while they come. */
static void first_text(struct segment *segment, const char *path)
{
    const char *reason;
    size_t bytes = 0;
    look(path, &segment->published);
    char *text = tuner_file_read(path, &bytes, &reason);
    if (text && bytes <= TEXT_MOST) {
        memcpy(segment->text, text, bytes);
        segment->text_bytes = bytes;
        segment->generation = 1;
    }
    free(text);
}

static bool prepare(struct segment *segment, const char *path)
{
    pthread_mutexattr_t attr;
    if (segment->magic == SEGMENT_MAGIC) return true;
    if (segment->magic != 0 || pthread_mutexattr_init(&attr)) return false;
    bool good = !pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) &&
                !pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
                !pthread_mutex_init(&segment->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    if (!good) return false;
    first_text(segment, path);
    segment->magic = SEGMENT_MAGIC;
    return true;
}

/* The lock is held. */
static char *take(struct tuner_reload *reload, size_t *bytes_out)
{
    struct segment *segment = reload->segment;
    if (reload->generation == segment->generation || reload->calls < segment->from_call)
        return NULL;
    if (segment->text_bytes > TEXT_MOST) return NULL; /* not written by this plugin */
    char *text = malloc(segment->text_bytes + 1);
    reload->generation = segment->generation;
    segment->taken++;
    if (!text) return NULL;
    memcpy(text, segment->text, segment->text_bytes);
    text[segment->text_bytes] = '\0';
    *bytes_out = segment->text_bytes;
    return text;
}

/* Made by a process of this user, and no other user may write to it. Asked before its lock is,
 * which its owner could hold for ever. */
static bool is_ours(int fd)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) return false;
    return st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Under the file lock it is empty or a whole segment; another size is another program's. */
static bool set_size(int fd)
{
    struct stat st;
    if (fstat(fd, &st)) return false;
    if (st.st_size == (off_t)sizeof(struct segment)) return true;
    return st.st_size == 0 && ftruncate(fd, sizeof(struct segment)) == 0;
}

/* The file lock orders those who come; the last one takes the name away. */
static bool join(int fd, struct tuner_reload *reload)
{
    struct segment *segment = NULL;
    if (!is_ours(fd) || flock(fd, LOCK_EX) || !set_size(fd)) return false;
    void *at = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return false;
    segment = at;
    if (!prepare(segment, reload->path) || !take_lock(segment)) {
        munmap(segment, sizeof(*segment));
        return false;
    }
    if (++segment->attached == reload->nranks) shm_unlink(reload->name);
    if (segment->generation == 0) segment->taken++; /* nothing to take */
    pthread_mutex_unlock(&segment->lock);
    reload->segment = segment;
    return true;
}

struct tuner_reload *tuner_reload_open(const char *path, unsigned long long comm_id,
                                       const struct tuner_size *size)
{
    const char *wanted = getenv("TUTTI_TUNER_RELOAD");
    if (comm_id == 0 || size->nnodes != 1 || (wanted && !strcmp(wanted, "0"))) return NULL;
    struct tuner_reload *reload = calloc(1, sizeof(*reload));
    if (!reload) return NULL;
    snprintf(reload->path, sizeof(reload->path), "%s", path);
    snprintf(reload->name, sizeof(reload->name), "/tutti-tuner-%u-%llx", (unsigned)getuid(),
             comm_id);
    reload->nranks = size->nranks;
    reload->looked_sec = now_sec();
    look(path, &reload->glimpse);
    int fd = shm_open(reload->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool joined = fd >= 0 && join(fd, reload);
    if (fd >= 0) {
        flock(fd, LOCK_UN); /* the mapping keeps the open file, and with it the lock */
        close(fd);
    }
    if (joined) return reload;
    free(reload);
    return NULL;
}

/* The new text, when this process should publish it now. */
static char *news(struct tuner_reload *reload, struct stamp *stamp, size_t *bytes_out)
{
    const char *reason;
    time_t now = now_sec();
    if (now == reload->looked_sec) return NULL;
    reload->looked_sec = now;
    if (!look(reload->path, stamp)) return NULL;
    bool stable = same(stamp, &reload->glimpse);
    reload->glimpse = *stamp;
    if (!stable || same(stamp, &reload->segment->published)) return NULL;
    return tuner_file_read(reload->path, bytes_out, &reason);
}

/* The lock is held. Every rank must be there and have the last text. */
static void publish(const struct tuner_reload *reload, const struct stamp *stamp, const char *text,
                    size_t bytes)
{
    struct segment *segment = reload->segment;
    bool ready = segment->attached == reload->nranks && segment->taken == reload->nranks;
    if (!ready || segment->left || same(stamp, &segment->published)) return;
    segment->published = *stamp;
    if (bytes > TEXT_MOST) return;
    memcpy(segment->text, text, bytes);
    segment->text_bytes = bytes;
    segment->generation++;
    segment->from_call = segment->most_calls + 1;
    segment->taken = 0;
}

char *tuner_reload_first(struct tuner_reload *reload, size_t *bytes_out)
{
    if (!reload || !take_lock(reload->segment)) return NULL;
    char *text = take(reload, bytes_out);
    pthread_mutex_unlock(&reload->segment->lock);
    return text;
}

char *tuner_reload_step(struct tuner_reload *reload, size_t *bytes_out)
{
    struct stamp stamp;
    size_t bytes = 0;
    if (!reload) return NULL;
    char *fresh = news(reload, &stamp, &bytes);
    char *text = NULL;
    if (take_lock(reload->segment)) {
        reload->calls++;
        if (reload->calls > reload->segment->most_calls)
            reload->segment->most_calls = reload->calls;
        if (fresh) publish(reload, &stamp, fresh, bytes);
        text = take(reload, bytes_out);
        pthread_mutex_unlock(&reload->segment->lock);
    }
    free(fresh);
    return text;
}

void tuner_reload_close(struct tuner_reload *reload)
{
    if (!reload) return;
    if (take_lock(reload->segment)) {
        bool lonely = reload->segment->attached < reload->nranks;
        reload->segment->left++;
        if (lonely) shm_unlink(reload->name);
        pthread_mutex_unlock(&reload->segment->lock);
    }
    munmap(reload->segment, sizeof(*reload->segment));
    free(reload);
}
