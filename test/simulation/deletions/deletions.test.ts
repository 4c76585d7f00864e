/** What may be deleted, and what is left: the program itself (main.ts) takes hours, and runs by hand. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Compiler } from './compiler.js';
import { executedOf, firstDifference } from './coverage.js';
import { statementsOf, withoutStatement } from './statements.js';

const CODE = `import { a } from './a.js';
register(a);
export class Part {
  count = 0;
  onFrame(frame: Frame): number {
    invariant(frame.size > 0, 'a frame has bytes');
    this.#ports.log.warn('a frame');
    this.counters.framesIn += 1;
    const next = this.count + 1;
    if (next > MAX) this.close(); else this.count = next;
    this.catalog.add(frame);
    return this.count;
  }
  close = (): void => { if (this.isClosed) return; };
}
`;

describe('deletions', () => {
  test('steps in functions are drawn; declarations, values, invariants, logs and counters are not', () => {
    const drawn = statementsOf('src/part.ts', CODE).map(({ line, text }) => `${String(line)} ${text}`);
    assert.deepEqual(drawn, [
      '10 if (next > MAX) this.close(); else this.count = next;', '10 this.close();', '10 this.count = next;',
      '11 this.catalog.add(frame);', '14 if (this.isClosed) return;', '14 return;',
    ]);
  });

  test('a deleted statement leaves the form of what stands around it', () => {
    const close = statementsOf('src/part.ts', CODE).find(({ text }) => text === 'this.close();');
    assert.ok(close);
    assert.equal(withoutStatement(CODE, close), CODE.replace('this.close();', '{}'));
  });

  test('a file is written as the build writes it, and a change that does not compile is told', () => {
    const project = fileURLToPath(new URL('../../../../', import.meta.url));
    const compiler = new Compiler(project);
    const file = 'src/gateway/mirror/link/credit-wish.ts';
    const text = readFileSync(`${project}${file}`, 'utf8');
    const built = readFileSync(`${project}dist/${file.replace('.ts', '.js')}`, 'utf8');
    assert.equal(compiler.emitted(text), built.replace(/\/\/# sourceMappingURL=.*$/, ''));
    assert.equal(compiler.errorIn(file, text), '');
    assert.notEqual(compiler.errorIn(file, `${text}const unknown: string = 1;\n`), '');
  });

  test('a program that never comes to a statement is known, also of one in a function that it calls', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-'));
    try {
      const code = 'function f(n) {\n  if (n > 1) {\n    g();\n  }\n  h();\n}\nfunction g() {}\nfunction h() {}\nf(1);\n';
      const file = join(folder, 'part.mjs');
      writeFileSync(file, code);
      const places = ['if (n > 1)', 'g();', 'h();'].map((text) => ({ file, offset: code.indexOf(text) }));
      const executed = await executedOf(places, async (env) => {
        await once(spawn(process.execPath, [file], { env }), 'close');
      });
      assert.deepEqual(places.map((place) => executed.has(place)), [true, false, true]);
      assert.equal(firstDifference(code, code.replace('g();', '{}')), code.indexOf('g();'));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
