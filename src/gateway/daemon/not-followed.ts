/** A running gateway can't go by another configuration: which key of the file that is about, and why. */
import type { Path } from '../../config/keys/key.js';

export class NotFollowed extends Error {
  override readonly name: string = 'NotFollowed';
  readonly key: Path;

  constructor(key: Path, why: string) {
    super(why);
    this.key = key;
  }
}
