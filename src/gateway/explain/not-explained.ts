/** Why it can't be told where mail would go. */
export class NotExplained extends Error {
  override readonly name: string = 'NotExplained';
  /** `question`: that was asked wrongly. `answer`: mail would be refused, or another must be asked. */
  readonly isOf: 'question' | 'answer';

  constructor(isOf: 'question' | 'answer', why: string) {
    super(why);
    this.isOf = isOf;
  }
}
