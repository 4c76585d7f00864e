/**
 * The addresses that what comes back is sent to: return addresses of all routes with `verp`, by domain and
 * prefix, and the address of feedback loops. Asked at each RCPT where there are any. Pure.
 */
import { foldCase } from '../../base/fold-case.js';
import type { ReturnAddresses } from '../../base/return-addresses.js';
import type { CameBack, FeedbackOptions, MadeHere } from './came-back.js';

/** A user says that a mail is junk when he comes to read it, which may be long after it came. */
const FEEDBACK_DAYS_MAX = 90;

export class ReturnPaths {
  /** Lower-case A-labels. */
  readonly domains: readonly string[];
  readonly #byDomain = new Map<string, ReturnAddresses[]>();
  readonly #feedback: FeedbackOptions | undefined;
  readonly #feedbackAddress: string;

  constructor(all: Iterable<ReturnAddresses>, feedback: FeedbackOptions | undefined) {
    for (const each of all) {
      const { domain } = each.options;
      this.#byDomain.set(domain, [...(this.#byDomain.get(domain) ?? []), each]);
    }
    this.domains = [...this.#byDomain.keys()];
    this.#feedback = feedback;
    this.#feedbackAddress = foldCase(feedback?.address ?? '');
  }

  /** `domain`: of the address, in lower-case A-labels. Undefined for any other address. */
  find(
    { address, domain }: { readonly address: string; readonly domain: string },
  ): CameBack | 'forged' | 'stale' | undefined {
    const claimed = this.#claimed(address, domain);
    if (claimed !== undefined) {
      const { options: { route, daysValid } } = claimed;
      const token = claimed.read(localPartOf(address));
      if (token === undefined) return 'forged';
      return token.ageDays > daysValid ? 'stale' : { kind: 'returned', route, token, to: token.sender };
    }
    if (this.#feedback === undefined || address.length !== this.#feedbackAddress.length) return undefined;
    const isFeedback = foldCase(address) === this.#feedbackAddress;
    return isFeedback ? { kind: 'feedback', to: this.#feedback.forwardTo } : undefined;
  }

  /** Whose return address this text is, of a report that anybody may have written. */
  madeHere(address: string): MadeHere | undefined {
    const claimed = this.#claimed(address, address.slice(address.lastIndexOf('@') + 1).toLowerCase());
    const token = claimed?.read(localPartOf(address));
    if (claimed === undefined || token === undefined || token.ageDays > FEEDBACK_DAYS_MAX) return undefined;
    return { route: claimed.options.route, token };
  }

  #claimed(address: string, domain: string): ReturnAddresses | undefined {
    const local = localPartOf(address);
    return this.#byDomain.get(domain)?.find((each) => each.isClaimed(local));
  }
}

function localPartOf(address: string): string {
  return address.slice(0, address.lastIndexOf('@'));
}
