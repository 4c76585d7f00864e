/**
 * Mail that a store had no credit for: how much it would have needed, until the store has granted that, or
 * has been asked often enough. A store gives a little with each question (docs/PROTOCOL.md "Acknowledgement
 * and credit"), so that nobody keeps what it does not need; the client comes again long after.
 */

/** A store of ten gateways answers the third; one that has none is left alone until mail is refused again. */
const QUESTIONS_MAX = 20;

export class CreditWish {
  #bytes = 0;
  #questionsLeft = 0;

  /** Mail of this cost was refused. */
  begin(bytes: number): void {
    this.#bytes = Math.max(bytes, this.#bytes);
    this.#questionsLeft = QUESTIONS_MAX;
  }

  /** The store grants so much now: is it to be asked once more? */
  wantsMoreThan(creditBytes: number): boolean {
    if (this.#questionsLeft > 0 && creditBytes < this.#bytes) {
      this.#questionsLeft -= 1;
      return true;
    }
    this.#bytes = 0;
    this.#questionsLeft = 0;
    return false;
  }
}
