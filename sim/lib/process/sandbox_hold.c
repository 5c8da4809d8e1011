/* sandbox_hold: the kernel's means that hold the child. */
#include "process/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

/* Newer than Debian 12's linux/landlock.h. */
enum { TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15, SCOPES = 3, TCP = 3 };
struct ruleset { uint64_t files, net, scoped; };

enum {
    READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE,
    WRITE = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | TRUNCATE,
    OF_FILES = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE,
    FIRST = (1 << 13) - 1,           /* all rights of version 1 */
};

int sandbox_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

bool sandbox_holds(const struct sandbox *sandbox)
{
    return sandbox->abi >= 0 && sandbox_abi() > 0;
}

/* A path that is not there needs no rule. */
static int allow(int rules, const char *path, uint64_t rights, uint64_t handled)
{
    int place = open(path, O_PATH | O_CLOEXEC), folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

    if (place < 0)
        return 0;
    rc = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
                      &(struct landlock_path_beneath_attr){rights & handled & (folder < 0 ? OF_FILES : ~0U), place}, 0);
    close(place);
    close(folder);
    return rc;
}

/* A set of rules by a version of Landlock, and the rights that it holds back; -1: there is none. */
static int begin(int abi, uint64_t *handled)
{
    struct ruleset ruleset = {(uint64_t)FIRST | (abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) | (abi >= 3 ? TRUNCATE : 0) |
                                  (abi >= 5 ? IOCTL_DEV : 0), TCP, SCOPES};

    *handled = ruleset.files;
    return (int)syscall(SYS_landlock_create_ruleset, &ruleset, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
}

/* From now on, with what all commands of a system read. */
static int end(int rules, uint64_t rights, uint64_t handled)
{
    static const char *const system[] = {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"};
    int rc = 0;

    for (size_t i = 0; i < COUNT(system); i++)
        rc |= allow(rules, system[i], rights, handled);
    rc |= allow(rules, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE, handled);
    return rc || syscall(SYS_landlock_restrict_self, rules, 0) ? -1 : 0;
}

int sandbox_landlock(const struct sandbox *sandbox)
{
    int abi = sandbox_abi(), rules, rc = 0;
    uint64_t handled;

    rules = begin(sandbox->abi && abi > sandbox->abi ? sandbox->abi : abi, &handled);
    if (rules < 0)
        return -1;
    for (size_t i = 0; sandbox->read && sandbox->read[i]; i++)
        rc |= allow(rules, sandbox->read[i], READ, handled);
    rc |= allow(rules, sandbox->folder, READ | WRITE, handled);
    return end(rules, READ, handled) || rc ? -1 : 0;
}

int sandbox_confine(const char *folder, const char *const *read)
{
    enum { SEE = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };
    uint64_t handled, change = SEE | WRITE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR;
    int rules = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : begin(sandbox_abi(), &handled), rc;

    if (rules < 0)
        return -1;
    rc = allow(rules, folder, change | LANDLOCK_ACCESS_FS_REFER, handled);
    for (size_t i = 0; read[i]; i++)
        rc |= allow(rules, read[i], SEE, handled);
    return end(rules, SEE, handled) || rc ? -1 : 0;
}

/* System calls of shells and of programs that make text of text. */
static const int allowed[] = {
#ifdef __x86_64__
    SYS_access, SYS_alarm, SYS_arch_prctl, SYS_dup2, SYS_getdents, SYS_getpgrp, SYS_lstat, SYS_pipe,
    SYS_poll, SYS_readlink, SYS_rename, SYS_select, SYS_stat, SYS_time, SYS_unlink,
#endif
    SYS_brk, SYS_chdir, SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_close_range,
    SYS_copy_file_range, SYS_dup, SYS_dup3, SYS_exit, SYS_exit_group, SYS_faccessat, SYS_faccessat2, SYS_fadvise64,
    SYS_fchdir, SYS_fstat, SYS_fstatfs, SYS_ftruncate, SYS_futex, SYS_getcwd, SYS_getdents64, SYS_getegid, SYS_geteuid,
    SYS_getgid, SYS_getgroups, SYS_getitimer, SYS_getpgid, SYS_getpid, SYS_getppid, SYS_getrandom, SYS_getrlimit,
    SYS_getrusage, SYS_getsid, SYS_gettid, SYS_gettimeofday, SYS_getuid, SYS_lseek, SYS_madvise, SYS_mmap, SYS_mprotect,
    SYS_mremap, SYS_munmap, SYS_nanosleep, SYS_newfstatat, SYS_pipe2, SYS_ppoll, SYS_pread64, SYS_pselect6,
    SYS_pwrite64, SYS_read, SYS_readlinkat, SYS_readv, SYS_renameat, SYS_renameat2, SYS_restart_syscall, SYS_rseq,
    SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
    SYS_sched_getaffinity, SYS_sched_yield, SYS_sendfile, SYS_set_robust_list, SYS_set_tid_address, SYS_setitimer,
    SYS_sigaltstack, SYS_splice, SYS_statfs, SYS_statx, SYS_sysinfo, SYS_times, SYS_umask, SYS_uname, SYS_unlinkat,
    SYS_wait4, SYS_waitid, SYS_write, SYS_writev,
};
/* Those that dtsim is asked about. */
static const int asked[] = {
#ifdef __x86_64__
    SYS_fork, SYS_vfork,
#endif
    SYS_clone, SYS_execve,
};

struct program { struct sock_filter items[512]; unsigned short count; };

static void put(struct program *program, unsigned short code, unsigned k, unsigned char yes, unsigned char no)
{
    BUG_IF(program->count >= COUNT(program->items));
    program->items[program->count++] = (struct sock_filter){code, yes, no, k};
}

static void give(struct program *program, unsigned action)
{
    put(program, BPF_RET | BPF_K, action, 0, 0);
}

static void load(struct program *program, size_t offset)
{
    put(program, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

/* Of the call `number`: the action. */
static void on(struct program *program, int number, unsigned action)
{
    put(program, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    give(program, action);
}

/* Of the call `number`: the action where one of these bits is set in a half of its arguments (0: the first one's lower half,
 * 1: its upper half, ...). */
static void on_bits(struct program *program, int number, size_t half, unsigned bits, unsigned action)
{
    put(program, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4);
    load(program, offsetof(struct seccomp_data, args) + 4 * half);
    put(program, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    give(program, action);
    load(program, offsetof(struct seccomp_data, nr));
}

int sandbox_seccomp(void)
{
    enum { NO = SECCOMP_RET_ERRNO | EPERM };
    struct program program = {.count = 0};

    load(&program, offsetof(struct seccomp_data, arch));
#ifdef __x86_64__
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
#else
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0);
#endif
    give(&program, SECCOMP_RET_KILL_PROCESS);
    load(&program, offsetof(struct seccomp_data, nr));       /* a call of x32 is none of the list */
    on_bits(&program, SYS_clone, 0, CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
            CLONE_NEWPID | CLONE_NEWNET | CLONE_PARENT | CLONE_UNTRACED, NO);
    on_bits(&program, SYS_openat, 4, O_ACCMODE | O_CREAT | O_TRUNC, SECCOMP_RET_USER_NOTIF);
    on(&program, SYS_openat, SECCOMP_RET_ALLOW);
    on_bits(&program, SYS_prlimit64, 4, ~0U, NO);            /* it sets a limit, which root may raise */
    on_bits(&program, SYS_prlimit64, 5, ~0U, NO);
    on(&program, SYS_prlimit64, SECCOMP_RET_ALLOW);
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5);
    load(&program, offsetof(struct seccomp_data, args[1]));
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 1, 0);
    put(&program, BPF_JMP | BPF_JGE | BPF_K, F_SETOWN, 1, 0);    /* which sends signals; leases */
    give(&program, SECCOMP_RET_ALLOW);
    give(&program, NO);
    on(&program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);    /* its flags are in memory; clone does as well */
    on(&program, SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY);
    on(&program, SYS_getpeername, SECCOMP_RET_ERRNO | ENOTSOCK);    /* by which bash asks whether a network starts it */
    for (size_t i = 0; i < COUNT(asked); i++)
        on(&program, asked[i], SECCOMP_RET_USER_NOTIF);
    for (size_t i = 0; i < COUNT(allowed); i++)
        on(&program, allowed[i], SECCOMP_RET_ALLOW);
    give(&program, NO);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &(struct sock_fprog){program.count, program.items});
}
