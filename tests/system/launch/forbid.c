/* Starts a program that may not make some system calls, as in a strict container.
 * usage: forbid unix|memfd|ptrace[,...] PROGRAM ARGUMENTS... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 64 };

static struct sock_filter filter[MOST];
static unsigned short used;

static void add(unsigned short code, unsigned k, unsigned char yes, unsigned char no)
{
    filter[used++] = (struct sock_filter){code, yes, no, k};
}

static void load(unsigned offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void refuse(unsigned call, int error)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error, 0, 0);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    load(offsetof(struct seccomp_data, nr));
    if (strstr(argv[1], "ptrace")) {
        refuse(SYS_ptrace, EPERM);
        refuse(SYS_process_vm_readv, EPERM);
        refuse(SYS_process_vm_writev, EPERM);
        refuse(SYS_pidfd_getfd, EPERM);
    }
    if (strstr(argv[1], "memfd")) refuse(SYS_memfd_create, ENOSYS);
    if (strstr(argv[1], "unix")) { /* the first argument of socket() is the family */
        add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3);
        load(offsetof(struct seccomp_data, args));
        add(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1);
        add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES, 0, 0);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog program = {.len = used, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 126;
}
