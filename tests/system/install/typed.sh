#!/bin/sh
# The commands of docs/ as they stand there, typed by a user who has installed Tutti: every block of a page that begins
# with a command, in a folder with the files that the page speaks of. README's are typed by fresh.sh, the packages' by
# packages.sh; nccl-tests and GPUs are not at hand. A new block that nothing types makes the test fail.
# usage: typed.sh BUILD_DIR SOURCE_DIR TUNER_PLUGIN NET_PLUGIN PROFILER_PLUGIN
set -eu
build=$1 source=$2 tuner=$(realpath "$3") net=$(realpath "$4") profiler=$(realpath "$5")
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
unset NCCL_HOME NCCL_ROOT CUDA_HOME CUDA_PATH CUDAToolkit_ROOT CPATH LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
DESTDIR=$there/root meson install -C "$build" --no-rebuild >"$there/said" 2>&1 || { cat "$there/said"; exit 1; }
prefix=$there/root/usr/local
PATH=$prefix/bin:$PATH
export PATH
home=$(tutti env --home)
export home

block() { # $1: page, $2: number of the block
    echo "$1 $2" >>"$there/known"
    awk -v wanted="$2" '/^```/ {inside = !inside; n += inside; next} inside && n == wanted' "$source/docs/$1"
}
typed() { # $1: page and block, for the message; commands on standard input
    cat >"$there/commands"
    [ -s "$there/commands" ] || { echo "$1: there are no commands"; exit 1; }
    sh -e "$there/commands" >"$there/said" 2>&1 || { echo "$1 ended with $?:"; cat "$there/commands"; tail -n 20 "$there/said"; exit 1; }
}
place() { # an empty folder to be in
    rm -rf "$there/place"
    mkdir "$there/place"
    cd "$there/place"
}
has_solver() { # for tutti program search
    command -v cadical || command -v kissat || command -v cryptominisat5 || command -v picosat || command -v z3
} >/dev/null
project() { # a person's own program with a Makefile that knows NVIDIA's names
    place
    cp "$source/examples/allreduce.c" my_program.c
    cp "$source/examples/allreduce.c" program.c
    cp "$source"/examples/*.h .
    printf 'my_program: my_program.c\n\t$(CC) -I$(NCCL_HOME)/include -I$(CUDA_HOME)/include $< -o $@ -L$(NCCL_HOME)/lib -lnccl -L$(CUDA_HOME)/lib64 -lcudart\n' >Makefile
    printf 'cmake_minimum_required(VERSION 3.18)\nproject(mine C)\nfind_package(CUDAToolkit REQUIRED)\n' >CMakeLists.txt
}

# ci.md: a job by hand, GitHub's steps in shells of their own, GitLab's in one.
project
block ci.md 1 | grep -v '^apt-get' | typed "ci.md, a job"
grep -q 'rank 3 of 4: 0 wrong' "$there/said" || { cat "$there/said"; exit 1; }
project
GITHUB_ENV=$there/github
export GITHUB_ENV
: >"$GITHUB_ENV"
block ci.md 2 | sed -n 's/^ *- run: //p' | grep -v '^apt-get' >"$there/steps"
[ "$(wc -l <"$there/steps")" = 3 ] || { echo "ci.md, GitHub: not three steps"; exit 1; }
while read -r step; do
    { sed "s/^\([A-Za-z_]*\)=\(.*\)/export \1='\2'/" "$GITHUB_ENV"; echo "$step"; } >"$there/one"
    typed "ci.md, GitHub: $step" <"$there/one"
done <"$there/steps"
grep -q 'rank 3 of 4: 0 wrong' "$there/said" || { cat "$there/said"; exit 1; }
unset GITHUB_ENV
# What both services read before any step: YAML with the keys that they ask for.
if python3 -c 'import yaml' 2>/dev/null; then
    block ci.md 2 >"$there/github.yml"
    block ci.md 3 >"$there/gitlab.yml"
    python3 - "$there/github.yml" "$there/gitlab.yml" <<'end' || exit 1
import sys, yaml
github, gitlab = (yaml.safe_load(open(path)) for path in sys.argv[1:])
job, = github["jobs"].values()
assert github[True] == ["push", "pull_request"] and job["runs-on"] and job["container"], github  # YAML's `on`
assert [sorted(step) for step in job["steps"]] == [["uses"]] + [["run"]] * 4, job
job, = gitlab.values()
assert job["image"] and len(job["script"]) == 4 and all(isinstance(step, str) for step in job["script"]), gitlab
end
else
    echo "not tried: YAML"
fi
project
block ci.md 3 | sed -n 's/^ *- //p' | grep -v '^apt-get' | typed "ci.md, GitLab"

# programs.md: builds that know NVIDIA's layout; pkg-config finds ours where it was told of the prefix.
project
if command -v cmake >/dev/null; then without=none; else without='^cmake'; echo "not tried: cmake"; fi
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
block programs.md 1 | grep -v "$without" | typed "programs.md, without kernels"
unset PKG_CONFIG_PATH
./a.out >/dev/null

# hostcuda.md, checking.md: a program of the runtime alone.
place
cat >program.c <<'end'
#include <cuda_runtime.h>
int main(void)
{
    void *memory = 0;
    return cudaMalloc(&memory, 64) || cudaMemset(memory, 0, 64) || cudaDeviceSynchronize() || cudaFree(memory);
}
end
block hostcuda.md 1 | typed "hostcuda.md"
block checking.md 1 | typed "checking.md"

# collectives.md: an algorithm as a file and in a folder, run by a program with ranks.
project
cc program.c -o program -I"$home/include" -L"$home/lib" -lnccl -lcudart
cp "$source/tests/golden/msccl/allreduce-pairs.xml" .
mkdir algorithms
cp allreduce-pairs.xml algorithms
block collectives.md 1 | sed -n 's/^\$ //p' | typed "collectives.md, verify"
grep -q '^proved: ' "$there/said" || { cat "$there/said"; exit 1; }
block collectives.md 2 | typed "collectives.md, running"
grep -q 'program allreduce-pairs.xml .*proved' "$there/said" || { cat "$there/said"; exit 1; }

# topology.md: a machine file in three names, and this machine.
place
for name in box ordered delivered; do
    cp "$source/tests/golden/machines/c06-dgxh100.xml" $name.xml
done
block topology.md 1 | typed "topology.md"

# readers/: the same for the pages that begin with a reader's task; hosts are those of namespaces.sh.
cp "$source/tests/golden/msccl/allreduce-pairs.xml" allreduce.xml
for number in 1 2 3; do
    block readers/operators.md $number | typed "operators.md $number"
done
if has_solver; then without=none; else without='^tutti program search'; fi
block readers/operators.md 4 | grep -v "$without" | typed "operators.md, algorithms"
cc "$source/examples/allreduce.c" -o program -I"$home/include" -L"$home/lib" -lnccl -lcudart
block readers/operators.md 7 | typed "operators.md, a trace"
[ -s run.html ]
place
ln -s "$source/examples" examples
block readers/programs.md 1 | typed "programs.md of the readers"
block readers/hpc.md 1 | sed 's/64M/64K/' | typed "hpc.md"
if [ "$(id -u)" = 0 ] && ip netns add tutti-typed 2>"$there/said"; then
    ip netns del tutti-typed
    block readers/hpc.md 3 | typed "hpc.md, namespaces"
else
    block readers/hpc.md 3 >"$there/commands" && echo "not tried: network namespaces"
fi
if [ "$(nproc)" -gt 1 ]; then block readers/hpc.md 4 | typed "hpc.md, binding"; else echo "not tried: two cores"; fi
cp "$tuner" libnccl-tuner-mine.so
cp "$net" libnccl-net-mine.so
cp "$profiler" libmine.so
block readers/plugins.md 1 | typed "plugins.md"
! grep WARN "$there/said" || exit 1
block readers/plugins.md 2 | typed "plugins.md, a check"

# The guides for authors, in a copy of the sources' examples.
place
cp -r "$source/examples" examples
block net-plugin-guide.md 1 | typed "net-plugin-guide.md, the example"
cp examples/net_plugin.c mine.c
block net-plugin-guide.md 2 | typed "net-plugin-guide.md, a file of one's own"
block net-plugin-guide.md 3 | typed "net-plugin-guide.md, a check"
block net-plugin-guide.md 4 | sed 's/16M/64K/' | typed "net-plugin-guide.md, a job"
grep -q 'NET/Example: .* calls were checked, 0 breaches of the contract' "$there/said" || { tail "$there/said"; exit 1; }
block profiler-plugin-guide.md 1 | sed 's/1M/64K/' | typed "profiler-plugin-guide.md"
grep -q '^comm,rank' "$there/said" || { tail "$there/said"; exit 1; }
block tuner-env-guide.md 1 | typed "tuner-env-guide.md"
cd examples
block ../examples/README.md 1 | typed "examples, make"
command -v cmake >/dev/null && block ../examples/README.md 2 | typed "examples, cmake"

# tracing.md: a run, and the folder with the traces of another.
place
block tracing.md 1 | typed "tracing.md, a run"
mkdir traces
mv tutti-trace.*.jsonl traces
if command -v otf2-print >/dev/null && ! tutti trace convert --to otf2 -o trial traces/ 2>&1 | grep -q built; then
    block tracing.md 2 | typed "tracing.md, an archive"
else
    echo "not tried: OTF2"
fi
block tracing.md 3 | typed "tracing.md, a page"
[ -s run.html ]
block tracing.md 5 | typed "tracing.md, chrome"
python3 -m json.tool all.json /dev/null
block tracing.md 6 | typed "tracing.md, records"
block collectives.md 3 | sed -n 's/^\$ //p' >"$there/search"
if has_solver; then typed "collectives.md, a search" <"$there/search"; else echo "not tried: a SAT solver"; fi

# Whatever begins with a command is typed above, or there is a reason.
while read -r page number reason; do
    [ -n "$reason" ] && echo "$page $number" >>"$there/known"
done <<'end'
checking.md 2 what a command says
hostcuda.md 2 a compiler of kernels is not everywhere
libfabric.md 1 libfabric is not everywhere
programs.md 2 nccl-tests is not at hand
programs.md 3 nccl-tests is not at hand
readers/hpc.md 2 several hosts: namespaces.sh
readers/operators.md 5 this host may have something to mend: doctor.py
readers/operators.md 6 a job that hangs: doctor.py and flight.py
tracing.md 2 OTF2 is not everywhere
tracing.md 4 a training program
tracing.md 7 a training program
tracing.md 8 a job that fails
../examples/README.md 2 cmake is not everywhere
end
words='^(\$ |tutti |make|meson|cc |c\+\+ |cmake|eval |mpirun |srun |ninja|[A-Z_]+=[^ ]+ +[a-z])'
for page in $(cd "$source/docs" && find . ../examples/README.md -name '*.md' | sed 's|^\./||'); do
    awk -v page="$page" '/^```/ {inside = !inside; n += inside; next} inside {print page, n, $0}' "$source/docs/$page"
done | while read -r page number line; do
    echo "$line" | grep -qE "$words" || continue
    grep -qxF "$page $number" "$there/known" || echo "$page: block $number is not typed: $line"
done >"$there/missing"
[ ! -s "$there/missing" ] || { cat "$there/missing"; exit 1; }
echo "typed: ok"
