"""Numbers of the system calls that filters name, for x86_64 and aarch64 (asm/unistd_64.h, asm-generic/unistd.h)."""

from __future__ import annotations

# name: (x86_64, aarch64); None where the architecture has none of that name.
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # what a process that only computes needs
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None), "fstat": (5, 80), "lstat": (6, None),
    "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
    "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66), "access": (21, None), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "dup": (32, 23), "nanosleep": (35, 101), "setitimer": (38, 103),
    "getpid": (39, 172), "sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212),
    "exit": (60, 93), "fcntl": (72, 25), "readlink": (89, None), "gettimeofday": (96, 169), "getuid": (102, 174),
    "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177), "sigaltstack": (131, 132),
    "gettid": (186, 178), "futex": (202, 98), "clock_gettime": (228, 113), "clock_nanosleep": (230, 115),
    "exit_group": (231, 94), "tgkill": (234, 131), "openat": (257, 56), "newfstatat": (262, 79),
    "readlinkat": (267, 78), "ppoll": (271, 73), "getrandom": (318, 278), "statx": (332, 291), "rseq": (334, 293),
    "getdents64": (217, 61), "restart_syscall": (219, 128),
    # what no compiler needs
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200), "listen": (50, 201),
    "accept4": (288, 242), "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "prlimit64": (302, 261), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    "quotactl": (179, 60), "fanotify_init": (300, 262), "syslog": (103, 116), "iopl": (172, None),
    "ioperm": (173, None), "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
}  # fmt: skip

COMPUTING = (
    "read", "write", "close", "stat", "fstat", "lstat", "poll", "lseek", "mmap", "mprotect", "munmap", "brk",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "pread64", "readv", "writev", "access", "sched_yield", "mremap",
    "madvise", "dup", "nanosleep", "setitimer", "getpid", "sendto", "recvfrom", "sendmsg", "recvmsg", "exit",
    "readlink", "gettimeofday", "getuid", "getgid", "geteuid", "getegid", "sigaltstack", "gettid", "futex",
    "clock_gettime", "clock_nanosleep", "exit_group", "openat", "newfstatat", "readlinkat", "ppoll", "getrandom",
    "statx", "rseq", "getdents64", "restart_syscall",
)  # fmt: skip
"""All that a process needs which loads a library and computes; files are Landlock's to decide."""

NEVER_COMPILING = tuple(list(NUMBERS)[list(NUMBERS).index("socket") :])
"""What a compiler has no use for: sockets, other processes, mounts, the machine's state."""
