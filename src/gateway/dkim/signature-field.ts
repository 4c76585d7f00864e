/**
 * The DKIM-Signature field (RFC 6376 3.5), folded at 78 columns, in two steps: the field without the value of
 * b=, which is signed in its canonical form (3.7), and then that value.
 *
 *   DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com; s=k1;
 *    t=1795229168; h=from:from:to:to:subject:subject:…;
 *    bh=…;
 *    b=…
 *
 * No l=: what is added behind a body must break its signature (8.2). No i=: it says nothing beyond d=. Pure.
 */
import { relaxedField } from './relaxed.js';

export type DkimAlgorithm = 'rsa-sha256' | 'ed25519-sha256';

export interface SignatureTags {
  readonly algorithm: DkimAlgorithm;
  readonly domain: string;
  readonly selector: string;
  /** Seconds of Unix time. */
  readonly signedAt: number;
  /** Undefined: it holds for ever. */
  readonly expiresAt: number | undefined;
  /** For h=. */
  readonly names: readonly string[];
  /** In base64. */
  readonly bodyHash: string;
}

const NAME = 'DKIM-Signature';
/** RFC 5322 2.1.1: what a line should have at most. */
const COLUMNS_MAX = 78;
const FOLD = '\r\n ';

/** Without the value of b=, which is its last tag. */
export class SignatureField {
  readonly #text: string;

  constructor(tags: SignatureTags) {
    const { algorithm, domain, selector, signedAt, expiresAt, names, bodyHash } = tags;
    const words = new FoldedWords(`${NAME}: v=1;`);
    for (const tag of [`a=${algorithm};`, 'c=relaxed/relaxed;', `d=${domain};`, `s=${selector};`]) {
      words.add(' ', tag);
    }
    words.add(' ', `t=${String(signedAt)};`);
    if (expiresAt !== undefined) words.add(' ', `x=${String(expiresAt)};`);
    names.forEach((name, index) => {
      const end = index === names.length - 1 ? ';' : ':';
      words.add(index === 0 ? ' ' : '', `${index === 0 ? 'h=' : ''}${name}${end}`);
    });
    words.add(' ', `bh=${bodyHash};`);
    this.#text = `${words.text}${FOLD}b=`;
  }

  /** What is signed behind the canonical fields. */
  get canonical(): string {
    return relaxedField(NAME, this.#text.slice(NAME.length + 1));
  }

  /** With its line end. `signature` is in base64. */
  signed(signature: string): string {
    const firstMax = COLUMNS_MAX - ' b='.length;
    const lineMax = COLUMNS_MAX - ' '.length;
    let text = this.#text + signature.slice(0, firstMax);
    for (let at = firstMax; at < signature.length; at += lineMax) {
      text += FOLD + signature.slice(at, at + lineMax);
    }
    return `${text}\r\n`;
  }
}

/** A text that grows by words, each on the next line when there is no room for it. */
class FoldedWords {
  text: string;
  #column: number;

  constructor(start: string) {
    this.text = start;
    this.#column = start.length;
  }

  /** `gap` stands in front of it where no line end does. */
  add(gap: string, word: string): void {
    if (this.#column + gap.length + word.length <= COLUMNS_MAX) {
      this.text += gap + word;
      this.#column += gap.length + word.length;
    } else {
      this.text += FOLD + word;
      this.#column = 1 + word.length;
    }
  }
}
