/**
 * What was learned last, by key: bounded in number, and in the characters that its values hold. The oldest
 * goes when there is too much; what is set again, or renewed, is the newest.
 */

interface Entry<V> {
  readonly value: V;
  readonly characters: number;
}

export class Newest<V> {
  readonly #entriesMax: number;
  readonly #charactersMax: number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry<V>>();
  /** Of keys and values. */
  #characters = 0;

  constructor(entriesMax: number, charactersMax = Infinity) {
    this.#entriesMax = entriesMax;
    this.#charactersMax = charactersMax;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** As get(); it is the newest then. */
  renewed(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** `characters`: of the value. */
  set(key: string, value: V, characters = 0): void {
    this.delete(key);
    this.#entries.set(key, { value, characters: key.length + characters });
    this.#characters += key.length + characters;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#entriesMax && this.#characters <= this.#charactersMax) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#characters -= this.#entries.get(key)?.characters ?? 0;
    this.#entries.delete(key);
  }
}
