/**
 * What a report says of an outcome that no next hop put into words: by the enhanced status code (RFC 3463)
 * that outbound/pure (classify.ts, mail-exchangers.ts, sts-policy.ts) and queue/settlement.ts gave it. Their
 * own texts name hosts and addresses of our network and stay in the log.
 */

/** RFC 3463 4.4.7: delivery time expired. */
export const TIME_EXPIRED = '4.4.7';

/** RFC 3463 3.2: destination address valid. Nothing is known of what became of the message behind it. */
export const GOES_ON = '2.1.5';

const WORDS: Readonly<Record<string, string>> = {
  [GOES_ON]: 'it passes mail on to several others',
  '4.3.2': 'this mail system was being stopped',
  '4.3.5': 'this mail system has to be mended first',
  '4.4.1': 'the next mail server could not be reached',
  '4.4.2': 'the connection with the next mail server was lost',
  '4.4.3': 'where mail for the domain goes could not be looked up',
  '4.4.4': 'the domain names no mail server that mail can be sent to',
  '4.4.7': 'it could not be delivered in time',
  '4.5.0': 'the next mail server did not keep to the protocol',
  '4.7.0': 'the next mail server does not let this mail system in for now',
  '4.7.4': 'the next mail server does not offer the security that mail to it must have',
  '4.7.5': 'no connection with the next mail server is as safe as mail to it must be',
  '4.7.8': 'the next mail server does not let this mail system in',
  '5.1.2': 'the domain does not exist, or has no mail server',
  '5.1.10': 'the domain takes no mail',
  '5.4.6': 'mail for the domain would come back to this mail system',
  '5.7.1': 'it was returned by the operator of this mail system',
  '5.7.10': 'it must have TLS all the way, and the next mail server has none that is proved',
  '5.7.30': 'it must have TLS all the way, and the next mail server does not promise that',
  '5.1.3': 'the address holds characters that can not be sent',
  '5.3.4': 'the message is larger than the next mail server takes',
  '5.6.3': 'the message has 8-bit content, which the next mail server does not take',
  '5.6.7': 'the address or the header needs SMTPUTF8, which the next mail server does not offer',
};

/** Words for a code; some for any. */
export function ownWords(enhanced: string): string {
  const words = enhanced.startsWith('4') ? 'it could not be delivered yet' : 'it could not be delivered';
  return WORDS[enhanced] ?? words;
}
