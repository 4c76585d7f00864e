/**
 * The thread that checks where messages come from: many at a time, for most of a check is waiting for the
 * DNS, which the gateway asks for it. Runs as a worker (check-thread.ts starts and ends it); mailauth is
 * loaded here and nowhere else, so what it throws, prints or takes of time is not the gateway's.
 *
 *   the record of DMARC is asked for ─▶ SPF ┐ both at once
 *                                            ├─▶ DMARC ─▶ verdicts
 *                                       DKIM┘
 *
 * Its time is over: the DNS is silent from then on (check-questions.ts). DMARC is first because names of SPF
 * and DKIM may be a stranger's, who lets them take all of the time.
 */
import { workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { toAscii } from '../../../../platform/node/idna.js';
import { latin1Text } from '../../../../platform/node/latin1.js';
import { TurnShare } from '../../../../platform/node/turn-share.js';
import type { DnsAnswer } from '../../../../platform/resolver.js';
import { authorOf } from '../../../dkim/author.js';
import { readHeaderSection } from '../../../dkim/header-section.js';
import type { HeaderSection } from '../../../dkim/header-section.js';
import type { DkimVerdict, DmarcVerdict, SpfVerdict, Verdicts } from '../verdicts.js';
import { dkimVerdict } from '../verdicts.js';
import type { CheckRequest, CheckedType, FromThread, ToThread } from './check-messages.js';
import { CheckQuestions } from './check-questions.js';
import type { AskDns } from './check-questions.js';
import { dkimVerdicts } from './dkim-check.js';
import { askForPolicy, dmarcVerdict } from './dmarc-check.js';
import { spfVerdict } from './spf-check.js';

const { port } = workerData as { readonly port: MessagePort };
const asked = new Map<number, (answer: DnsAnswer<CheckedType>) => void>();
let questionCount = 0;
/** A hundred messages may be here, all of which are made to cost: a ping is answered between their turns. */
const turns = new TurnShare();

const say = (said: FromThread): void => { port.postMessage(said); };

const askUntil = (untilMs: number): AskDns => (name, type) => new Promise((resolve) => {
  const question = questionCount++;
  asked.set(question, resolve);
  say({ kind: 'ask', question, name, type, withinMs: untilMs - performance.now() });
});

/** `domain`: of its one author; '' without one. */
interface Header {
  readonly section: HeaderSection | undefined;
  readonly domain: string;
}

function headerOf(content: Uint8Array): Header {
  const section = readHeaderSection([content], latin1Text);
  const author = section === undefined ? undefined : authorOf(section, toAscii);
  return { section, domain: author?.domain ?? '' };
}

async function verdictsOf(request: CheckRequest, questions: CheckQuestions): Promise<Verdicts> {
  const { content } = request;
  const { section, domain } = await turns.resultOf(() => headerOf(content));
  askForPolicy(domain, questions);
  const [spf, dkim] = await Promise.all([
    spfVerdict(request, questions).catch((): SpfVerdict =>
      ({ result: 'permerror', domain: '', isHelo: false })),
    section === undefined
      ? [dkimVerdict('permerror', 'no plain header')]
      : dkimVerdicts(content, section, questions, turns).catch((): readonly DkimVerdict[] =>
        [dkimVerdict('permerror', 'can not be evaluated')]),
  ]);
  const dmarc = await dmarcVerdict(domain, spf, dkim, questions).catch((): DmarcVerdict =>
    ({ result: 'permerror', reason: 'can not be evaluated', domain: '', policy: '' }));
  return { spf, dkim, dmarc };
}

async function check(request: CheckRequest): Promise<void> {
  const questions = new CheckQuestions(askUntil(performance.now() + request.withinMs));
  const timer = setTimeout(() => { questions.end(); }, request.withinMs);
  const verdicts = await verdictsOf(request, questions);
  clearTimeout(timer);
  say({ kind: 'checked', check: request.check, verdicts });
}

port.on('message', (said: ToThread) => {
  switch (said.kind) {
    case 'check':
      return void check(said.request);
    case 'answer': {
      const answered = asked.get(said.question);
      asked.delete(said.question);
      return answered?.(said.answer);
    }
    case 'ping':
      return say({ kind: 'pong' });
  }
});
say({ kind: 'ready' });
