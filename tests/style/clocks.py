#!/usr/bin/env python3
"""Every timed wait goes by the monotonic clock: no object of the library and its plugins refers to a call whose time-out
is a moment of the wall clock, or can be. The objects say so, whatever macro or header the call came from."""
import glob, os, subprocess, sys

FORBIDDEN = {"sem_timedwait", "pthread_cond_timedwait", "pthread_mutex_timedlock", "pthread_rwlock_timedrdlock",
             "pthread_rwlock_timedwrlock", "pthread_timedjoin_np", "cnd_timedwait", "mtx_timedlock", "mq_timedreceive",
             "mq_timedsend", "getitimer", "setitimer", "alarm", "gettimeofday"}
FOLDERS = ("src/*.p", "src/*/*.p", "hostcuda/*.p", "plugins/*.p", "plugins/*/*.p", "tools/*.p")


def main():
    root = os.environ["MESON_BUILD_ROOT"]
    objects = sorted({o for folder in FOLDERS for o in glob.glob(os.path.join(root, folder, "**", "*.o"), recursive=True)})
    if not objects:
        print("no objects below", root)
        return 1
    wrong = []
    listed = subprocess.run(["nm", "-A", "-u", *objects], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        path, symbol = line.split(":", 1)
        if symbol.split()[-1].split("@")[0] in FORBIDDEN:
            wrong.append(f"{os.path.relpath(path, root)}: {symbol.split()[-1]}")
    print(f"objects that wait by the wall clock: {len(wrong)} of {len(objects)}, limit 0")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
