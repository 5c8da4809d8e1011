#!/usr/bin/env python3
"""What 'dtsim import megatron' reads of a shell's language, held against bash: each construct stands in a script between
TP=1 and a launch with --tensor-model-parallel-size $TP, and bash runs the script with a program torchrun that prints its
arguments. The degree that import reads is bash's, or import refuses the script; of two it says by a line of theirs that it
does otherwise (exit where nothing is launched). Few may be refused. Then constructs stand three in a row, at random.

    tests/shell_constructs.py DTSIM"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

# Between TP=1 and the launch. The degrees are 1, 2, 4 or 8.
CONSTRUCTS = r"""
TP=8
TP="8" # TP=2
export TP=8
export "TP=8"
export X=2 TP=8
KV=TP=8; export $KV
export $(echo TP=8)
declare TP=8
declare -i TP=4+4
declare -i TP=4; TP+=4
declare -i TP; TP=2*4
declare -r TP=8
typeset TP=8
local TP=8
readonly TP; TP=8
readonly TP=8; TP=2
TP=8 true
TP=8 X=2 true
TP=8 :
TP=8 export X
true TP=8
(TP=8)
( TP=8; true )
(TP=8; (TP=2))
{ TP=8; }
{ TP=8; } | cat
echo 8 | { read TP; }
echo 8 | read TP
echo 8 | while read X; do TP=$X; done
while read X; do TP=$X; done <<< 8
while read X; do TP=$X; done < <(echo 8)
read TP <<< 8
read -r X TP <<< "2 8"
read -p prompt TP <<< 8
IFS=, read X TP <<< 2,8
readarray -t TP <<< 8
mapfile -t TP < <(echo 8)
printf -v TP %d 8
getopts t TP -t
let TP=8
let TP*=8
let "TP = 8"
let TP++
((TP=8))
((TP*=8))
((TP+=7))
((++TP))
(( TP == 1 )) && TP=8
(( TP > 1 )) && TP=8
if ((TP == 1)); then TP=8; fi
: $((TP=8))
: $((TP++))
X=$((TP+=7))
X=$((TP*8)); TP=$X
TP=$((TP<<3))
TP=$((TP ? 8 : 2))
TP=$((2**3))
: ${TP:=8}
unset TP; : ${TP:=8}
unset TP; : "${TP:=8}"
unset TP; : ${TP=8}
TP=; : ${TP=8}; TP=${TP:-2}
TP=; TP=${TP:-8}
TP=; TP=${TP-8}; TP=${TP:-2}
unset TP; TP=${TP-8}
unset -v TP; TP=${TP:-8}
unset TP; TP=${TP+2}; TP=${TP:-8}
unset X TP; TP=${TP:-8}
TP=${TP:+8}
TP=${X:+8}${TP}
X=TP; TP=${!X}; TP=${TP/1/8}
TP=${TP/1/8}
TP=${TP//1/8}
TP=88; TP=${TP%8}
TP=88; TP=${TP#8}
TP=18; TP=${TP:1}
TP=18; TP=${TP: -1}
TP=12345678; TP=${#TP}
A=(2 8); TP=${A[1]}
A=(2 8); TP=${A[-1]}
A=(8 2); TP=$A
A=(1 2); TP=${#A[@]}
A=(8); TP=${A[@]}
A[0]=8; TP=${A[0]}
TP[0]=8
TP=(8 2)
TP=(2 8); TP=("${TP[@]:1}")
declare -A A=([x]=8); TP=${A[x]}
declare -n A=TP; A=8
TP=2; TP+=
TP=; TP+=8
eval TP=8
eval "TP=8"
eval 'TP=8'
eval "X=8; TP=\$X"
X=TP; eval "$X=8"
X="TP=8"; eval $X
eval $(echo TP=8)
eval "$(echo TP=8)"
command eval TP=8
builtin eval TP=8
X="TP=8"; $X || true
source ./env.sh
. ./env.sh
source env.sh
true && source ./env.sh
false && source ./env.sh
X=env.sh; source "./$X"
source $(echo ./env.sh) >/dev/null 2>&1
source <(echo TP=8)
i=0; A=(./env.sh ./none.sh); . "${A[i++]}"
source ./env.sh $((TP+=1))
source -- ./env.sh
source() { TP=8; }; source ./none.sh
PATH=$PATH:$PWD; source env.sh
source ./none.sh 2>/dev/null; TP=8
source ./none.sh || TP=8
f() { source ./env.sh; }; f
[ -f env.sh ] && . ./env.sh
[ -f none.sh ] && . ./none.sh
bash ./env.sh
bash -c 'TP=8'
bash -c "export TP=8"
set -- 8; TP=$1
set 2 8; TP=$2
set -- 2 8; shift; TP=$1
set -- 2 8; TP=$#
set -- 8; TP=$@
set -- 8; TP="$*"
set -- $(echo 2 8); TP=${2:-4}
set -e; TP=8
set -euo pipefail; TP=8
set -o pipefail; TP=8
TP=${1:-8}
TP=${2:-$TP}
f() { TP=8; }
f() { TP=8; }; f
f () { TP=8; }; f
f() ( TP=8 ); f
f() { (TP=8); }; f
function f { TP=8; }; f
function f() { TP=8; }; f
function f { TP=8; }
f() { local TP=8; }; f
f() { local TP; TP=8; }; f
f() { local X=8; TP=$X; }; f
f() { declare TP=8; }; f
f() { declare -g TP=8; }; f
f() { typeset TP=8; }; f
f() { export TP=8; }; f
f() { readonly X=8; TP=$X; }; f
f() { TP=$1; }; f 8
f() { TP=$2; }; f 2 8
f() { TP=${1:-8}; }; f
f() { TP=${1:-8}; }; f 2
f() { shift; TP=$1; }; f 2 8
f() { TP=$#; }; f 1 1
f() { g "$@"; }; g() { TP=$2; }; f 2 8
f() { TP=8; return; TP=2; }; f
f() { [ $TP = 1 ] && return; TP=8; }; f
f() { [ -f none ] && return; TP=8; }; f
f() { return 1; }; f && TP=8
f() { return 1; }; f || TP=8
f() { false; }; if f; then TP=8; fi
f() { true; }; if f; then TP=8; fi
f() { if [ $TP = 1 ]; then TP=8; fi; }; f
f() { TP=8; }; f; f() { TP=2; }
f() { TP=8; }; f() { TP=2; }; f
f() { TP=8; }; unset -f f; f || true
f() { TP=8; }; (f)
f() { TP=8; }; f | cat
f() { TP=8; }; X=$(f)
f() { TP=8; }; false && f
f() { TP=8; }; true && f
f() { TP=8; }; false || f
f() { TP=$X; }; X=8 f
f() { TP=$X; }; X=2; X=8; f
f() { echo 8; }; TP=$(f)
f() { exit 0; }; (f); TP=8
TP=$(echo 8)
TP=`echo 8`
TP=$(TP=8; echo $TP)
X=$(TP=8)
true && TP=8
false && TP=8
true || TP=8
false || TP=8
: && TP=8
! true && TP=8
! false && TP=8
! false || TP=8
! { false; } && TP=8
true && false || TP=8
false && true || TP=8
false || true && TP=8
true || false && TP=8
false && { TP=8; }
true && { TP=8; }
false || { TP=8; }
false && (TP=8)
false && if true; then TP=8; fi
false && for X in 8; do TP=$X; done
true | false && TP=8
false | true && TP=8
grep -q none env.sh && TP=8
grep -q TP env.sh && TP=8
grep -q none env.sh || TP=8
test -d none && TP=8
ls none 2>/dev/null && TP=8
cd none 2>/dev/null && TP=8
mkdir -p d && TP=8
cd . && TP=8
cd . || TP=8
[ 1 = 1 ] && TP=8
[ 1 = 2 ] && TP=8
[ 1 = 2 ] || TP=8
[ ! 1 = 2 ] && TP=8
! [ 1 = 2 ] && TP=8
[ 1 = 2 -o 1 = 1 ] && TP=8
[ 1 = 1 -a 1 = 2 ] && TP=8
[ 1 = 1 ] && [ 1 = 2 ] && TP=8
[ 1 = 1 ] && [ 2 = 2 ] && TP=8
[ -z "$X" ] && TP=8
[ -n "$X" ] && TP=8
[ $X ] && TP=8
X=; [ -n $X ] && TP=8
X=; [ -z $X ] && TP=8
X=1; [ $X ] && TP=8
test 1 = 2 && TP=8
test 1 = 1 && TP=8
[[ 1 == 1 ]] && TP=8
[[ 1 == 2 ]] && TP=8
[[ 1 == 1 && 1 == 2 ]] && TP=8
[[ 1 == 1 && 2 == 2 ]] && TP=8
[[ 1 == 2 || 2 == 2 ]] && TP=8
[[ 1 == 2 || 2 == 3 ]] && TP=8
[[ -n "" && 1 == 1 ]] && TP=8
X=; [[ -n $X && 1 == 1 ]] && TP=8
X=; [[ -z $X && 1 == 1 ]] && TP=8
X=; [[ -z $X ]] && TP=8
[[ ! 1 == 2 ]] && TP=8
[[ ! ( 1 == 2 ) ]] && TP=8
[[ abc == a* ]] && TP=8
[[ abc == a?c ]] && TP=8
[[ abc == a[b]c ]] && TP=8
[[ abc != a?c ]] && TP=8
[[ abc =~ ^a ]] && TP=8
[[ abc < abd ]] && TP=8
[[ 2 -lt 10 ]] && TP=8
[[ 010 -eq 8 ]] && TP=8
[[ TP -eq 1 ]] && TP=8
[[ -v TP ]] && TP=8
if true; then TP=8; fi
if false; then TP=8; fi
if ! true; then TP=8; fi
if ! [ 1 = 2 ]; then TP=8; fi
if [ 1 = 1 ] && [ 1 = 2 ]; then TP=8; fi
if [ 1 = 1 ] || [ 1 = 2 ]; then TP=8; fi
if false; then TP=2; else TP=8; fi
if false; then TP=2; elif true; then TP=8; else TP=4; fi
if [ -d none ]; then TP=2; elif true; then TP=8; fi
if true; then if false; then TP=8; fi; fi
if true; then { TP=8; }; fi
if false; then f() { TP=8; }; fi; type f >/dev/null 2>&1 && f
if TP=8; then true; fi
if false; then true; elif TP=8; then true; fi
if (exit 1); then TP=8; fi
if { true; false; }; then TP=8; fi
for X in 2 8; do TP=$X; done
for TP in 2 8; do true; done
for ((TP=1; TP<8; TP*=2)); do true; done
for X; do TP=8; done
while false; do TP=8; done
while true; do TP=8; break; done
until true; do TP=8; done
until [ $TP = 8 ]; do TP=8; done
select TP in 2 8; do break; done <<< 2 2>/dev/null
case 1 in 1) TP=8;; *) TP=2;; esac
case 2 in 1) TP=8;; esac
case $TP in 1) TP=8;; *) TP=2;; esac
case x in y|x) TP=8;; esac
case x in (x) TP=8;; esac
TP=8 &
TP=8 & wait
{ TP=8; } & wait
X=1 && TP=8 & wait
true; TP=8; true
TP=8 > /dev/null
TP=8 2>&1
> /dev/null TP=8
TP=8 &> /dev/null
time TP=8
exec 3>&1; TP=8
(exec true); TP=8
(exit 1); TP=8
(exit 0) && TP=8
(exit 1) && TP=8
trap 'TP=8' DEBUG
trap 'TP=8' EXIT
shopt -s nocasematch; [[ a == A ]] && TP=8
alias TP=8
coproc TP=8
coproc { TP=8; }
IFS=x; X=8x2; set -- $X; TP=$1
IFS=:; A=2:8; for X in $A; do TP=$X; done
cat <<E\nTP=8\nE
cat <<E\n  E\nTP=8\nE
cat <<-E\n\tE\nTP=8
cat <<'E'\n$(TP=8)\nE
cat <<E && TP=8\nx\nE
bash <<E\nTP=8\nE
# TP=8
: # ; TP=8
: '\nTP=8\n'
echo "\nTP=8\n"
: \\\nTP=8
TP=\\\n8
TP=$'8'
TP=$'\x38'
TP=$"8"
TP='8'
TP=\8
TP=""8""
X='TP=8'; X
'TP=8' 2>/dev/null
"TP"=8 2>/dev/null
TP =8 2>/dev/null
TP= 8 2>/dev/null
echo TP=8
printf 'TP=8'
env TP=8 true
nohup TP=8 2>/dev/null
command true && TP=8
command false && TP=8
\true && TP=8
X=true; $X && TP=8
X=false; $X && TP=8
TP={8,2}
TP=$(( TP )) ; TP=$((TP+7))
TP=$[8]
TP=${HOME:+8}
TP=${PWD:-1}; TP=8
X=${UID:-2}; [ $X = 2 ] || TP=8
X=${SHLVL:-none}; [ $X = none ] || TP=8
TP=$?; TP=8
true; [ $? = 0 ] && TP=8
false; [ $? = 0 ] && TP=8
[ $# = 0 ] && TP=8
[ $# -lt 1 ] && TP=8
[ -z "$1" ] && TP=8
TP=$LINENO
export -n TP; TP=8
unset 'TP'; TP=${TP:-8}
X="TP=8"; export "$X"
X=T; eval "${X}P=8"
X=T; declare "${X}P=8"
X=T; printf -v "${X}P" 8
X=T; read "${X}P" <<< 8
X=T; let "${X}P=8"
X=T; unset "${X}P"; TP=${TP:-8}
""".strip("\n").split("\n")

# What depends on the machine, on programs that do not run, or is no degree: import refuses them, and says why.
REFUSED = {"getopts t TP -t", "source ./none.sh || TP=8", "ls none 2>/dev/null && TP=8", "cd none 2>/dev/null && TP=8", "TP={8,2}", "TP=${HOME:+8}",
           "TP=$LINENO", "TP=8; bash -c 'LAUNCH'"}

# Ways in which a script launches: LAUNCH is the command.
FORMS = r"""
exec LAUNCH
exec LAUNCH\nTP=8
f() { LAUNCH; }; TP=8; f
f() { LAUNCH; }; f; TP=8
f() { local TP=8; LAUNCH; }; f
f() { TP=$1; LAUNCH; }; f 8
f() { LAUNCH; }; TP=8 f
f() { LAUNCH; }
f() { LAUNCH; }; false && f
f() { "$@"; }; TP=8; f LAUNCH
if [ $TP = 1 ]; then LAUNCH; else TP=8; LAUNCH; fi
if [ $TP = 2 ]; then LAUNCH; else TP=8; LAUNCH; fi
if false; then LAUNCH; fi
case $TP in 1) LAUNCH;; esac
for TP in 8; do LAUNCH; done
(TP=8; LAUNCH)
(TP=8); LAUNCH
{ TP=8; LAUNCH; } 2>&1 | cat
TP=8; LAUNCH 2>&1 | tee log
TP=8; LAUNCH & wait
TP=8 && LAUNCH
TP=8; false && LAUNCH
TP=8; false || LAUNCH
TP=8; exit; LAUNCH
TP=8; if [ -d none ]; then exit 1; fi; LAUNCH
[ -d none ] && exit 1; TP=8; LAUNCH
C="LAUNCH"; TP=8; $C
TP=8; C="LAUNCH"; $C
TP=8; C="LAUNCH"; eval $C
C='LAUNCH'; TP=8; eval $C
C='LAUNCH'; TP=8; eval "$C"
C=(LAUNCH); TP=8; "${C[@]}"
TP=8; C=(LAUNCH); "${C[@]}"
TP=8; bash -c "LAUNCH"
TP=8; bash -c 'LAUNCH'
export TP=8; bash -c 'LAUNCH'
TP=8 bash -c 'LAUNCH'
TP=8 LAUNCH
TP=8; time LAUNCH
TP=8; ! LAUNCH
TP=8; env A=1 LAUNCH
TP=8; nohup LAUNCH
set -- $TP 8; TP=$2; LAUNCH
TP=8; bash <<E\nLAUNCH\nE
TP=8; echo "LAUNCH"
TP=8; echo "LAUNCH" | bash
TP=8; $(echo LAUNCH)
trap 'LAUNCH' EXIT; TP=8
""".strip("\n").split("\n")

LAUNCH = ("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "
          "--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --vocab-size 1024 "
          "--tensor-model-parallel-size $TP\n")


def of_bash(folder, script):
    """The degree with which bash runs the launch; None: it does not run it, or with no degree."""
    with open(os.path.join(folder, "degree"), "w"):
        pass
    path = os.path.join(folder, "bin") + ":" + os.environ["PATH"]
    subprocess.run(["bash", script], cwd=folder, env=dict(os.environ, PATH=path), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20, check=False)
    with open(os.path.join(folder, "degree")) as file:
        words = file.read().split()
    return words[-1] if words else None


def of_import(dtsim, folder, script):
    """The degree of the scenario, or None, and what import says."""
    done = subprocess.run([dtsim, "import", "megatron", script, "--cluster", "dgx-h100"], cwd=folder, capture_output=True,
                          text=True, timeout=20, check=False)
    if done.returncode not in (0, 4, 5):
        return "exit %d" % done.returncode, done.stderr
    found = re.search(r"tensor: (\d+)", done.stdout)
    return (found.group(1) if found else None), done.stderr


def judge(dtsim, folder, constructs):
    """What import makes of a script: "same", "refused", "warned", "silent"; and what to print."""
    whole = any("LAUNCH" in construct for construct in constructs)
    lines = "\n".join(constructs).replace("LAUNCH", LAUNCH.strip()).replace(r"\\\n", "\\\n").replace(r"\n", "\n").replace(r"-\t", "-\t").replace("\n\\t", "\n\t")
    with open(os.path.join(folder, "run.sh"), "w") as script:
        script.write("#!/bin/bash\nTP=1\n" + lines + "\n" + ("" if whole else LAUNCH))
    right = of_bash(folder, "run.sh")
    found, said = of_import(dtsim, folder, "run.sh")
    named = any(3 <= int(n) <= 2 + len(lines.split("\n")) for n in re.findall(r"^run\.sh:(\d+):\d+: warning", said, re.M))
    told = "%s: bash has %s, import has %s:\n%s" % (lines, right, found, said)
    if found is not None and found.startswith("exit"):
        return "silent", told
    if found == right:
        return "warned" if named else "same", told
    return "refused" if found is None else "warned" if named else "silent", told


def main():
    dtsim = os.path.abspath(sys.argv[1])
    rows = 2000 if os.environ.get("DTSIM_TESTS") == "all" else 100
    counts = {"same": 0, "refused": 0, "warned": 0, "silent": 0}
    rolls = random.Random(56)
    wrong = 0

    if not shutil.which("bash"):
        print("skipped: there is no bash")
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(LAUNCH)
        script.flush()
        if "no Landlock" in of_import(dtsim, "/", script.name)[1]:
            print("skipped: this kernel has no Landlock")
            return 0
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "bin"))
        with open(os.path.join(folder, "bin", "torchrun"), "w") as program:
            program.write('#!/bin/bash\necho "${@: -1}" > "%s/degree"\n' % folder)
        os.chmod(os.path.join(folder, "bin", "torchrun"), 0o755)
        with open(os.path.join(folder, "env.sh"), "w") as other:
            other.write("TP=8\n")
        for construct in CONSTRUCTS + FORMS:
            verdict, told = judge(dtsim, folder, [construct])
            counts[verdict] += 1
            if verdict == "silent" or (verdict == "refused") != (construct in REFUSED):
                print(told)
                wrong += 1
        for _ in range(rows):
            verdict, told = judge(dtsim, folder, rolls.sample(CONSTRUCTS, 3))
            counts[verdict] += 1
            if verdict == "silent":
                print(told)
                wrong += 1
    if REFUSED - set(CONSTRUCTS + FORMS):
        print("of no construct: %s" % (REFUSED - set(CONSTRUCTS + FORMS)))
        wrong += 1
    print("%d constructs, %d launches, %d rows of three: %s" % (len(CONSTRUCTS), len(FORMS), rows, counts))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
