/** A message as hooks are asked about it, of which a test says only what matters to it. */
import type { JudgedEnvelope, JudgedMessage } from '../../../../../src/gateway/inbound/hooks/message-hook.js';

export function judged(
  envelope: Partial<JudgedEnvelope> = {}, content: readonly Uint8Array[] = [], isAbandoned = (): boolean => false,
): JudgedMessage {
  return {
    envelope: {
      queueId: '00001', client: '192.0.2.1', helo: 'client.example', user: '', tlsVersion: '', reversePath: 'a@example.org',
      recipients: ['b@example.net', 'c@example.net'], destinations: ['member@hidden.example'], ...envelope,
    },
    content,
    contentBytes: content.reduce((sum, piece) => sum + piece.length, 0),
    get isAbandoned() { return isAbandoned(); },
  };
}
