/**
 * Long work in many turns of the loop: workers that all do it at once leave the processors to those that take
 * mail.
 */

/** Between two steps. */
const PAUSE_MS = 1;

/** Rejects with what a step throws. */
export async function inSteps<T>(steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS); });
  }
}
