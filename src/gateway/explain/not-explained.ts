/** `question`: that was asked wrongly. `answer`: mail would be refused. `unknown`: another must be asked. */
export type Unexplained = 'question' | 'answer' | 'unknown';

/** Why it can't be told where mail would go. */
export class NotExplained extends Error {
  override readonly name: string = 'NotExplained';
  readonly isOf: Unexplained;

  constructor(isOf: Unexplained, why: string) {
    super(why);
    this.isOf = isOf;
  }
}
