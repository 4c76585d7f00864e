/**
 * Where mail would go, as `explain` shows it: gateway/explain finds it out, by what a gateway runs by or by a
 * file.
 */
import { z } from 'zod';
import { list, name, text } from './pages.js';

const TO_CHARACTERS_MAX = 1_024;
const asked = z.string().max(TO_CHARACTERS_MAX);

/** Of GET /api/v1/explain. */
export const explainQuestion = z.object({
  /** An address, a domain, or the name of a queue. */
  to: z.string('to is an address, a domain or the name of a queue').min(1).max(TO_CHARACTERS_MAX),
  /** The reverse-path that the mail has, in angle brackets or without; '' and <>: the null one. */
  from: asked.default(''),
  /** "address:port" that it comes in by; '': the first one. */
  listener: asked.default(''),
});
export type ExplainQuestion = Readonly<z.output<typeof explainQuestion>>;

const explainedHost = z.object({
  preference: z.int(),
  host: name,
  port: z.int(),
  /** Those that would be tried. */
  addresses: list(name),
  /**
   * Why there are none, or which are not connected to; on what terms mail goes there, where it is not as the
   * route says: of a fallback, or in clear for now, as its TLS failed.
   */
  why: text,
  /** By MX: what its TLSA records say. */
  dane: text.exactOptional(),
  /** It has addresses, and is not connected to before the DNS answers about these. */
  dane_failed: z.literal(true).exactOptional(),
  /** The DNS did not answer about all of them: where there are none, there may be. */
  addresses_failed: z.literal(true).exactOptional(),
});
export type ExplainedHost = Readonly<z.output<typeof explainedHost>>;

/** One of ours, and what the DNS says of it. */
const explainedSource = z.object({
  address: name,
  /** In EHLO. */
  name,
  confirmed: z.boolean(),
  /** Why the DNS does not confirm it; '' if it does. */
  why: text,
});
export type ExplainedSource = Readonly<z.output<typeof explainedSource>>;

/** What receivers find in the DNS of a domain that we send for. */
const dnsFinding = z.object({
  /** `unknown`: the DNS gave no answer. `advice`: mail is taken by most without it. */
  verdict: z.enum(['good', 'bad', 'advice', 'unknown']),
  text,
});
export type DnsFinding = Readonly<z.output<typeof dnsFinding>>;

const explainedTo = z.object({
  /** As it was asked for. */
  recipient: name,
  /** What it is, of an address that the gateway takes itself, and of a queue or domain; '' of any other. */
  is: text,
  /** Whom it stands for; the recipient otherwise. */
  stands_for: name,
  /** Who may send to it, of an address or a domain; left out of an address of the gateway's own. */
  senders: text.exactOptional(),
});
export type ExplainedTo = Readonly<z.output<typeof explainedTo>>;

const explainedWay = z.object({
  ...explainedTo.shape,
  /** What an alias made of that; as it was otherwise. */
  address: name,
  queue: name,
  next_hop: name,
  hosts: list(explainedHost),
  tls: name,
  /** The user that we are to the next hop; left out: nobody. */
  auth: text.exactOptional(),
  /** That it would leave from, and those of IPv6 that are not confirmed; none: as the system chooses. */
  sources: list(explainedSource),
  /** The MTA-STS policy of the domain, or that none can be had; '' where it has none, or none counts. */
  mta_sts: text,
  /** Why there is no way; '' if there is one. */
  why: text,
  /** RFC 3463, of why. */
  status: name,
  /** There may be one: whether a policy proves its hosts is not known now. */
  policy_untold: z.literal(true).exactOptional(),
});
export type ExplainedWay = Readonly<z.output<typeof explainedWay>>;

/**
 * GET /api/v1/explain?to=…: 400 when that is nothing that mail goes to, or `from` is no reverse-path; 409
 * when mail would be refused; 503 when another must be asked who is there, or too many ask.
 */
export const explainAnswer = z.object({
  to: explainedTo,
  /** None: mail ends here. Several: by an alias. */
  ways: list(explainedWay),
  /** Others that an alias leads to. */
  left_out: z.int(),
  /**
   * Where a way is by MX: DKIM, SPF and DMARC of the domain of `from`, or of those that mail is signed for.
   * A gateway of an older release says nothing of them.
   */
  sender: list(dnsFinding).exactOptional(),
  retries: z.object({ first_ms: z.int(), max_ms: z.int(), lifetime_ms: z.int() }),
});
export type ExplainAnswer = Readonly<z.output<typeof explainAnswer>>;
