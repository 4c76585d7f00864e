/** A running gateway can't go by another configuration: which key of the file that is about, and why. */
export class NotFollowed extends Error {
  override readonly name: string = 'NotFollowed';
  readonly key: readonly string[];

  constructor(key: readonly string[], why: string) {
    super(why);
    this.key = key;
  }
}
