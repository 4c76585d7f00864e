/**
 * A program for etcd-end.test.ts: uses a register for four seconds, closes it, and has nothing else to do.
 */
import { connectEtcdRegister } from '../../../src/register/etcd/etcd-register.js';
import { QUIET } from '../../unit/register/real-world.js';

const USE_MS = 4_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const register = connectEtcdRegister({ endpoints: [process.argv[2] ?? ''], cluster: 'end' }, QUIET);
register.watch([''], { onSnapshot: () => {}, onChange: () => {}, onDeleted: () => {}, onAway: () => {} });
register.openSession(5_000, {
  onOpen: () => {
    say('open');
  },
  onLost: () => {},
});
const writing = setInterval(() => {
  register.write([{ key: 'a', value: 'x', ifRevision: 0 }], () => {});
}, 100);
setTimeout(() => {
  if (!register.state.isUp && process.argv[2]?.endsWith(':1') === true) say('away');
  clearInterval(writing);
  register.close();
  say('closed');
}, USE_MS);
