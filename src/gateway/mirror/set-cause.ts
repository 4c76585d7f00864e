/**
 * Why a queue's set of mirrors changes, in the words of the log line that tells of the change: who is isolated, leaves,
 * joins or is let in again, and why; or that the set is founded anew, by this gateway alone or as an operator forced it.
 * What each of these is: replica-set.ts. Asked when the change is opened, before anything of it is noted.
 */
import type { Partition } from './partition.js';
import type { Replica } from './replica.js';

export function causeOfChange(partition: Partition, founding: boolean, next: ReadonlySet<Replica>): string {
  const parts: string[] = [];
  if (founding) parts.push(...foundingWords(partition, next));
  for (const replica of partition.replicas) {
    const { storeId } = replica.store;
    const stays = next.has(replica);
    if (replica.member && !stays) parts.push(replica.inSync ? `${storeId} left: ${replica.leavingWhy}` : `${storeId} isolated: ${replica.awayCause}`);
    else if (stays && !replica.inSync && !founding) parts.push(replica.member ? `${storeId} let in again: it is filled` : `${storeId} joined: it is in sync`);
  }
  return parts.join('; ');
}

function foundingWords(partition: Partition, next: ReadonlySet<Replica>): string[] {
  const founders = namesOf([...next]);
  const given = namesOf(partition.replicas.filter(({ isGivenUp }) => isGivenUp));
  const words = [given === '' ? `founded by this gateway at ${founders}: no mirror in sync was left` : `founded at ${founders}, forced by an operator who gave up ${given}`];
  if (partition.setChangeNumber !== 0) words.push(`epoch ${String(partition.newestEpoch)} was sent and never acknowledged`);
  return words;
}

function namesOf(replicas: readonly Replica[]): string {
  return replicas.map(({ store }) => store.storeId).join(', ');
}
