/**
 * SASLprep (RFC 4013) of names and passwords, as far as it decides which of them are the same: what is mapped
 * to nothing (2.1, RFC 3454 B.1), and the normalization (2.2). What it prohibits is simply never right. Who
 * is asked by HTTP gets a password with the latter alone: others have it with the joiners of its emoji. Pure.
 */

const MAPPED_TO_NOTHING = /[\u00ad\u034f\u1806\u180b-\u180d\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]/g;

/** '' also of a text of which nobody sees anything. */
export function prepared(text: string): string {
  return normalized(text.replace(MAPPED_TO_NOTHING, ''));
}

export function normalized(text: string): string {
  return text.normalize('NFKC');
}
