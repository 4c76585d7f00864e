/** Which of several words was probably meant by one that is none of them: verbs, options, keys. Pure. */

/** The candidate that `word` was probably meant to be: few changes of letters apart, or undefined. */
export function nearest(
  word: string, candidates: readonly string[], changesMax = Math.max(2, Math.floor(word.length / 3)),
): string | undefined {
  let best: string | undefined;
  let bestDistance = changesMax + 1;
  const plain = plainOf(word);
  for (const candidate of candidates) {
    const distance = editDistance(plain, plainOf(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function plainOf(word: string): string {
  return word.toLowerCase().replaceAll('-', '_');
}

/** Levenshtein with swaps of neighbours counted as one. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
