#!/bin/bash
# Checks the models here, then every mutant. Exit 0: the design holds within the bounds, and each mutant breaks a
# property. Needs spin, gcc, two cores and 8 GB.
#
#   ./run.sh                everything: see README.md for how long it takes
#   ./run.sh NAME ...       these checks only
#   OUT=DIR ./run.sh ...    raw output there instead of in out/
#   JOBS=1 ./run.sh ...     one check at a time instead of two
set -u
cd "$(dirname "$0")" || exit 2
here=$PWD
out=${OUT:-$PWD/out}
jobs_max=${JOBS:-2}
chosen=" $* "
command -v spin >/dev/null && command -v gcc >/dev/null || { echo "spin and gcc are needed" >&2; exit 2; }
rm -rf "$out"; mkdir -p "$out"; out=$(cd "$out" && pwd)
known=0

# check WANTED NAME SECONDS MODEL FLAGS...: WANTED is holds, violated or nothing-found (which need not be finished).
# -RSn among the flags searches in random order. The hash table grows by itself.
check() {
    [ "$chosen" = "  " ] || [[ "$chosen" == *" $2 "* ]] || return
    known=$((known + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$jobs_max" ]; do wait -n; done
    run_check "$@" &
}
run_check() {
    local wanted=$1 name=$2 seconds=$3 model=$here/$4.pml; shift 4
    local verdict=broken states='' started=$SECONDS random='' flags=() effort=-O2
    [ "$wanted" = violated ] && effort=-O1  # found in seconds: compiling is what takes time
    local one; for one in "$@"; do case "$one" in -RS*) random=$one ;; *) flags+=("$one") ;; esac; done
    mkdir -p "$out/$name" && cd "$out/$name" || exit 2
    if spin -a "${flags[@]}" "$model" >spin.log 2>&1 &&
        gcc $effort -w -DSAFETY -DNOREDUCE -DHC4 -DVECTORSZ=1024 -DMEMLIM=4000 ${random:+-DT_RAND -DP_RAND} -o pan pan.c 2>gcc.log; then
        timeout -s INT "$seconds" ./pan -m200000 -w22 -E $random >result 2>&1
        local rc=$?
        if grep -q 'assertion violated' result; then verdict="violated $(broken_property "$model" "${flags[@]}")"
        elif [ $rc = 124 ] || grep -q 'Interrupted\|MEMLIM bound\|max search depth too small\|out of memory' result; then
            verdict=unfinished
            [ "$wanted" = nothing-found ] && verdict="nothing-found, unfinished"
        elif grep -q 'errors: 0' result; then
            verdict=holds
            [ "$wanted" = nothing-found ] && verdict="nothing-found, finished"
        fi
        states=$(grep -oE '[0-9.e+]+ states, stored' result | head -n 1)
        [ -n "$states" ] || states=$(grep -oE 'States= *[0-9.e+]+' result | tail -n 1)
    fi
    rm -f pan pan.?
    local line; line=$(printf '%-34s %-26s %-30s %4d s' "$name" "$verdict" "$states" $((SECONDS - started)))
    case "$verdict" in $wanted*) ;; *) line="$line  UNEXPECTED, wanted $wanted"; touch "$out/bad" ;; esac
    echo "$line" | tee -a "$out/summary"
}

# Which property the trail ends at: printed by the model, else in the comment of the line that asserts.
broken_property() {
    local model=$1; shift
    spin -t -k ./*.trail "$@" "$model" >replay 2>&1
    local said line
    said=$(grep -oE 'PROPERTY [0-9]+' replay | tail -n 1)
    line=$(grep -oE 'pml:[0-9]+, Error: assertion' replay | grep -oE '[0-9]+' | head -n 1)
    [ -n "$said" ] || said=$(sed -n "${line:-1}p" "$model" | grep -oE 'property [0-9]+|drains' | head -n 1)
    echo "${said,,}"
}
mutant() { # mutant RULE MODEL FLAGS...
    local rule=$1; shift
    check violated "no-$rule" "${SECS:-60}" "$@" "-DNO_$rule"
}

# ------------------------------------------------------------------------------------------- register.pml, rules 1-13
owner="-DN=0 -DMAXEPOCH=3 -DSTORECRASHES=0 -DPROCCRASHES=0"
crash="-DN=1 -DMAXEPOCH=2 -DSTORECRASHES=1 -DPROCCRASHES=0"
three="-DN=1 -DMAXEPOCH=3 -DSTORECRASHES=0 -DPROCCRASHES=0"
two="-DN=2 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0 -DTWO_PROCESSES"
drain="-DLIVE -DLIVE_DRAINS_ALWAYS -DN=1 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0"
empty="-DOPERATOR -DNO_LAST_MEMBER_STAYS"
boots="-DN=1 -DMAXEPOCH=3 -DSTORECRASHES=1 -DPROCCRASHES=0 -DTWO_PROCESSES -DTWIN"
rolled="-DV=5 -DSTART_ROLLED -DRESTARTS"
files="-DN=1 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0 -DSTORESTOPS=1"

check nothing-found design-epochs 290 register $three
check holds design-ownership    400 register -DN=0 -DMAXEPOCH=4 -DSTORECRASHES=0 -DPROCCRASHES=0
check holds design-messages     240 register $two
check holds design-crash        120 register -DN=1 -DMAXEPOCH=2 -DSTORECRASHES=1 -DPROCCRASHES=1
check holds design-empty        100 register $crash $empty
check holds design-drains       100 register $drain
check holds design-drains-crash 150 register -DLIVE $crash

for rule in LEASE_WAIT FENCE_FIRST CAS_FIRST LEASE_AT_ALL_MEMBERS FENCE_STOPS_LEASES DROP_KNOWN HAND_BACK_STOPS; do
    mutant $rule register $owner
done
mutant RIGHT_BY_UNION register $owner -DSTART_ONE
mutant UNKNOWN_STAYS_UNKNOWN register $owner -DSTART_ONE -RS1
mutant MEMBERS_AFTER_WAIT register -DN=0 -DMAXEPOCH=4 -DSTORECRASHES=0 -DPROCCRASHES=0 -DSTART_ONE -RS1
mutant COMPARE register -DN=0 -DMAXEPOCH=3 -DSTORECRASHES=1 -DPROCCRASHES=0
for rule in SESSION_WHEN_EMPTY SESSION_COMPARES NOTHING_TO_TAKE; do mutant $rule register $owner $empty; done
mutant EMPTY_COMMITS_NOTHING register $crash $empty
mutant LAST_MEMBER_STAYS register $drain
mutant OLD_TERM_CANNOT_FILL register $three -DSTART_ONE -DTWO_PROCESSES
mutant SAME_HISTORY register $two
mutant OWN_TERM register $three
for rule in ACK_FROM_ALL COMMIT_BY_UNION CAUGHT_UP RECORDED_BOOT FENCE_STOPS_CHANGES WITHDRAW 4XX_AFTER_WITHDRAW \
    NO_REPLY_WHEN_LOST; do
    mutant $rule register $crash
done

# Three members; a next boot instead of a dead member in one change; two changes, a message and a crash; boots in files.
check holds design-three-members 150 register -DN=1 -DMAXEPOCH=2 -DSTORECRASHES=0 -DPROCCRASHES=0 -DMAXMEMBERS=3 -DSTART_THREE
check holds design-next-boot     150 register $boots
check nothing-found design-two-changes 300 register -DN=1 -DMAXEPOCH=3 -DSTORECRASHES=1 -DPROCCRASHES=0 -DTWO_PROCESSES
check holds design-files         150 register $files
check holds design-files-owner   150 register $owner -DSTORESTOPS=1
check holds design-files-drain   150 register $drain -DSTORESTOPS=1 -DTWO_PROCESSES
mutant BOOT_OF_ITS_OWN register $boots
mutant FILE_FENCES register $files
mutant FILE_LEASES register $owner -DSTORESTOPS=1
mutant FILE_USED_ONCE register $files

# -------------------------------------------------------------------------------------------- partial.pml, rule 14
check nothing-found design-partial 150 partial
check holds design-partial-small 60 partial -DP=2
check violated canary-partial 60 partial -DCANARY
for rule in PARTIAL_NO_COPY READ_ON_EQUAL FILL_WHOLE TWO_IN_STEP; do mutant $rule partial; done

# ----------------------------------------------------------------------------------------------- told.pml, rule 15
check holds design-told           250 told -DV=4 -DONE_TAKER
check holds design-told-crash     150 told -DV=3 -DSTORECRASHES=1
check holds design-told-rolled    100 told $rolled
check violated canary-told        60 told -DV=4 -DONE_TAKER -DCANARY
for rule in TOLD_BEFORE_USE READ_AFTER_TELLING ASK_EVERY_STORE ALL_ANSWER FENCE_TELLS_NOTHING; do
    mutant $rule told -DV=4
done
for rule in TAKER_TELLS BY_TERM OWN_LINE; do mutant $rule told $rolled; done
mutant FILES told -DV=4 -DSTORECRASHES=1

# --------------------------------------------------------------------------------------- given.pml and rules.pml
check holds design-given         20 given
check holds design-given-memory  20 given -DMEMORY_ONLY
for rule in SET_ASIDE WAIT STORE_BEFORE_END; do mutant $rule given; done
check holds design-rules         20 rules
for rule in READ_AT_TAKEOVER HOLDERS_AFTER_RULE RECORD_NAMES ACK_AFTER_WAIT; do mutant $rule rules; done
check holds design-poison        20 rules -DPOISON
mutant MARK_AT_ALL_MEMBERS rules -DPOISON

# ------------------------------------------------------------------- ended.pml: orphans adopted, partitions that end
check holds design-ended         20 ended
check violated canary-ended      20 ended -DCANARY
for rule in ADOPTION_WAITS END_WHEN_EMPTY END_NAMES_STRAYS END_TOLD LINE_FIRST LINE_COUNTS ABOVE_END OLDER_ONLY \
    LEFT_IS_RECORDED FOUNDER_NAMES_LEFT; do
    mutant $rule ended
done

# -------------------------------------------------------------------------------------------------------------- verdict
wait
for name in $chosen; do [ -d "$out/$name" ] || { echo "no such check: $name" >&2; exit 2; }; done
[ ! -e "$out/bad" ] || exit 1
echo "As wanted: $known checks."
