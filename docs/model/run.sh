#!/bin/bash
# Checks twinpost.pml, then every mutant, one after the other. Exit 0: no counterexample in the design within
# the bounds, and each mutant breaks a property. Needs spin, gcc, one core and 4 GB.
#
#   ./run.sh                everything; about half an hour
#   ./run.sh NAME ...       these checks only
#   OUT=DIR ./run.sh ...    raw output there instead of in out/
set -u
cd "$(dirname "$0")" || exit 2
model=$PWD/twinpost.pml
out=${OUT:-$PWD/out}
chosen=" $* "
command -v spin >/dev/null && command -v gcc >/dev/null || { echo "spin and gcc are needed" >&2; exit 2; }
rm -rf "$out"; mkdir -p "$out"; out=$(cd "$out" && pwd)
bad=0
known=0

# check WANTED NAME HASHBITS SECONDS GCC-FLAG MODEL-FLAGS...
check() {
    local wanted=$1 name=$2 bits=$3 seconds=$4 gccflag=$5; shift 5
    [ "$chosen" = "  " ] || [[ "$chosen" == *" $name "* ]] || return
    known=$((known + 1))
    mkdir -p "$out/$name" && cd "$out/$name" || exit 2
    local verdict=broken states='' started=$SECONDS
    if spin -a "$@" "$model" >spin.log 2>&1 &&
        gcc -O2 -w -DSAFETY -DNOREDUCE -DVECTORSZ=1024 -DMEMLIM=4000 "$gccflag" -o pan pan.c 2>gcc.log; then
        timeout -s INT "$seconds" nice -n 15 ./pan -m200000 -w"$bits" -E >result 2>&1
        local rc=$?
        if grep -q 'assertion violated' result; then
            verdict="violated $(broken_property "$@")"
        elif [ $rc = 124 ] || grep -q 'Interrupted\|MEMLIM bound\|max search depth too small\|out of memory' result; then verdict=unfinished
        elif grep -q 'errors: 0' result; then verdict=holds
        fi
        states=$(grep -oE '[0-9.e+]+ states, stored' result | head -n 1)
        [ -n "$states" ] || states=$(grep -oE 'States= *[0-9.e+]+' result | tail -n 1)
    fi
    rm -f pan pan.?
    printf '%-32s %-24s %-34s %4d s\n' "$name" "$verdict" "$states" $((SECONDS - started)) | tee -a "$out/summary"
    local one
    for one in ${wanted//|/ }; do case "$verdict" in $one*) return ;; esac; done
    echo "UNEXPECTED: $name: $verdict, wanted $wanted"; bad=1
}

# Which property the trail ends at: named by Watch, else in the comment of the line that asserts.
broken_property() {
    spin -t -k ./*.trail "$@" "$model" >replay 2>&1
    local said line
    said=$(grep -oE 'PROPERTY [0-9]' replay | tail -n 1)
    line=$(grep -oE 'twinpost.pml:[0-9]+, Error: assertion' replay | grep -oE '[0-9]+' | head -n 1)
    [ -n "$said" ] || said=$(sed -n "${line:-1}p" "$model" | grep -oE 'property [0-9]|drains')
    echo "${said,,}"
}

small="-DN=1 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0"
crash="-DN=1 -DMAXEPOCH=2 -DSTORECRASHES=1 -DPROCCRASHES=0"
calm="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=0 -DPROCCRASHES=0"
one="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=1 -DPROCCRASHES=0"
two="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=2 -DPROCCRASHES=0"
gateway=-DWITHOUT=2             # no rescue
rescue=-DWITHOUT=1              # no second incarnation
founders="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=3 -DPROCCRASHES=0 $rescue"
joiners="$one -DJOINERS"
older="$joiners -DUNPROVEN -DCUTOFF=1"      # the older process of the gateway is cut off, the next one has the queue
other="$joiners -DCUTOFF=2"                 # the gateway is cut off, the rescue has the queue
lost="$one $rescue -DREFILLS -DLOSTONE"
moved="-DN=0 -DMAXEPOCH=4 -DSTORECRASHES=0 -DSTORESTOPS=1 -DPROCCRASHES=0 -DDROPS $rescue"
opened="$calm $rescue -DOPENFILLS"
ahead="-DN=2 -DMAXEPOCH=3 -DSTORECRASHES=0 -DPROCCRASHES=0 $gateway -DAHEAD"
again="-DAGAIN=1 -DATTEMPTS=2"   # a claimant dies, and its next process claims
stops="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=0 -DSTORESTOPS=1 -DPROCCRASHES=0"
leaves="$crash -DSTORESTOPS=1 -DLEAVES $gateway"
died="-DN=1 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=1 $rescue -DLIVE -DLIVE_DRAINS_ALWAYS"

# The design: whole space.
check holds design-small     24 120 -DHC4 $small
check holds design-crash     25 600 -DHC4 $crash
check holds design-ownership 25 600 -DHC4 $one
# The same with one claimant: what is too large with two.
check holds gateway-two-crashes 25 600 -DHC4 $two $gateway
check holds gateway-no-proof    25 600 -DHC4 $calm -DUNPROVEN $gateway
check holds gateway-messages    25 600 -DHC4 -DN=2 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0 $gateway
check holds gateway-ahead       25 600 -DHC4 $ahead
check holds gateway-drains      25 600 -DHC4 $small -DLIVE -DLIVE_DRAINS_ALWAYS $gateway
check holds gateway-waiting     25 600 -DHC4 $crash -DLIVE $gateway
check holds rescue-founders     25 600 -DHC4 $founders
check holds rescue-messages     25 600 -DHC4 -DN=2 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0 $rescue
check holds rescue-drains       25 600 -DHC4 $died
check holds rescue-waiting      25 600 -DHC4 $crash -DLIVE $rescue
check holds rescue-again        25 600 -DHC4 $small $again $rescue
check holds rescue-again-epochs 25 600 -DHC4 $calm $again $rescue
check holds rescue-drops        25 600 -DHC4 $small -DDROPS $rescue
check holds rescue-drops-epochs 25 600 -DHC4 $calm -DDROPS -DHANDBACK $rescue
check holds gateway-leaves      25 600 -DHC4 $leaves
check holds gateway-refills     25 600 -DHC4 $crash -DREFILLS $gateway
check holds joiners-of-other    25 600 -DHC4 $other
check holds joiners-of-older    25 600 -DHC4 $older -DATTEMPTS=2
check holds witness-by-right    25 600 -DHC4 $one $rescue
check holds witness-unbroken    25 600 -DHC4 $moved
check holds witness-let-in      25 600 -DHC4 $lost
check holds fills-while-open    25 600 -DHC4 $opened
# Too large to finish beside other work: a search for a while, reported as such.
check 'holds|unfinished' sampled-two-crashes 25 40 -DHC4 $two
check 'holds|unfinished' sampled-no-proof  25 40 -DHC4 $calm -DUNPROVEN
check 'holds|unfinished' sampled-hand-back 25 40 -DHC4 $small -DHANDBACK
check 'holds|unfinished' sampled-stops     25 40 -DHC4 $stops
check 'holds|unfinished' sampled-again     25 40 -DHC4 $small $again
check 'holds|unfinished' sampled-messages 31 40 -DBITSTATE -DN=2 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0
check 'holds|unfinished' sampled-epochs   31 40 -DBITSTATE -DN=1 -DMAXEPOCH=3 -DSTORECRASHES=1 -DPROCCRASHES=1
check 'holds|unfinished' sampled-drains   31 40 -DBITSTATE $small -DLIVE -DLIVE_DRAINS_ALWAYS
check 'holds|unfinished' sampled-waiting  31 40 -DBITSTATE $crash -DLIVE

# The mutants.
for r in ACK_FROM_ALL SURVIVOR_NEEDED CLAIM_AT_EVERY_MEMBER LEASE_WAIT FENCE_ON_OPEN_CONNECTIONS WITHDRAW \
         NEWEST_EPOCH_ONLY ATOMIC_CLAIM CHECK_BEFORE_DOT 4XX_AFTER_WITHDRAW LEASE_IN_BOTH_SETS \
         STANDING_BY_A_CHANGE DEAD_BEFORE_RESTART CONFIRMED_EACH_TERM; do
    check violated "no-$r" 22 60 -DHC4 $small "-DNO_$r"
done
for r in EPOCH_AT_SURVIVOR_FIRST EMPTY_STORE_REFUSED; do check violated "no-$r" 22 60 -DHC4 $crash "-DNO_$r"; done
for r in GRACE_AFTER_RESTART GRACE_FOR_HOLDER SURVIVORS_BEFORE_JOINER CLAIMS_CONFIRMED ONLY_COPIES_COUNT \
         LEARNED_IN_TIME EVERY_MEMBER_LOST OWNER_PROVEN_DEAD OTHERS_ASKED EVERY_STORE_ANSWERS CLAIM_WHERE_KNOWN \
         ROUND_IN_ONE_BOOT; do
    check violated "no-$r" 24 90 -DHC4 $one "-DNO_$r"
done
check violated no-WITNESS_IN_SET_SENT 24 90 -DHC4 $two -DNO_WITNESS_IN_SET_SENT
check violated no-SPILLED_EMPTIED 24 90 -DHC4 $stops -DNO_SPILLED_EMPTIED
for r in WAIT_WITHOUT_PROOF WAIT_AT_EACH_STORE; do check violated "no-$r" 24 60 -DHC4 $calm -DUNPROVEN "-DNO_$r"; done
check violated no-ALL_ACKED_BEFORE_RELEASE 24 60 -DHC4 $small -DHANDBACK -DNO_ALL_ACKED_BEFORE_RELEASE
check violated no-RELEASED_TO_OWNER 24 60 -DHC4 $small $again $rescue -DNO_RELEASED_TO_OWNER
for r in CHANGED_TO_OWNER ONLY_MEMBERS_RELEASED; do     # as long as a release gives an old token back
    check violated "no-$r" 24 60 -DHC4 $small -DHANDBACK -DNO_RELEASED_TO_OWNER "-DNO_$r"
done
check violated no-NEWER_SET_FENCES 24 60 -DHC4 $one -DNO_NEWER_SET_FENCES
check violated no-DROPPED_REFUSED 24 60 -DHC4 $calm -DDROPS $rescue -DNO_DROPPED_REFUSED
check violated no-DROPPED_FENCES 24 60 -DHC4 $small -DDROPS $rescue -DNO_DROPPED_FENCES
check violated no-LEAVER_NOT_READ 24 60 -DHC4 $leaves -DNO_LEAVER_NOT_READ
check violated no-LET_IN_BY_A_CHANGE 24 60 -DHC4 $crash -DREFILLS $gateway -DNO_LET_IN_BY_A_CHANGE
check violated no-FILE_USED_ONCE 24 60 -DHC4 $one -DSTORESTOPS=1 -DNO_FILE_USED_ONCE
for r in STEPPING_DOWN PROBE_FIRST; do check violated "no-$r" 24 60 -DHC4 $died "-DNO_$r"; done
check violated no-WITNESS_OF_FOUNDERS 24 60 -DHC4 $founders -DNO_WITNESS_OF_FOUNDERS
check violated no-FILLED_BY_NAMER 24 60 -DHC4 $other -DNO_FILLED_BY_NAMER
check violated no-FILLED_BY_PROCESS 24 60 -DHC4 $older -DNO_FILLED_BY_PROCESS
check violated no-WITNESS_BY_RIGHT 24 60 -DHC4 $one $rescue -DNO_WITNESS_BY_RIGHT
check violated no-WITNESS_UNBROKEN 24 60 -DHC4 $moved -DNO_WITNESS_UNBROKEN
check violated no-WITNESS_VOID_LET_IN 24 60 -DHC4 $lost -DNO_WITNESS_VOID_LET_IN
check violated no-OTHER_SET_FENCES 24 60 -DHC4 $opened -DNO_OTHER_SET_FENCES
check violated no-TAIL_BY_DIGEST 24 60 -DHC4 $ahead -DNO_TAIL_BY_DIGEST

cd "$out" || exit 2
if [ "$chosen" != "  " ] && [ "$known" != $# ]; then echo "no such check among: $*"; bad=1; fi
[ $bad = 0 ] && echo "As wanted: $known checks in $SECONDS s."
exit $bad
