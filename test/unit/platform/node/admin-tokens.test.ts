/** Who may ask an admin port, src/platform/node/admin-tokens.ts: what a line grants, and which file is refused, by its line. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { describe, test } from 'node:test';
import { ownerOf, readTokens } from '../../../../src/platform/node/admin-tokens.js';
import { TOKEN, tokensFile } from './token-file.js';

const hashOf = (token: string): string => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const rolesOf = (file: string, token: string): readonly string[] => [...ownerOf(readTokens(file), token)?.roles ?? []].sort();

describe('a file of tokens', () => {
  test('grants what its lines say: content and operate include read, and not one another', () => {
    const file = tokensFile('# who may', '', 'mon read monitoring-token-1', '  ann  operate  anns-own-token-22', 'bob content,operate bobs-own-token-333', 'legal content legals-own-token-4');
    assert.deepEqual(rolesOf(file, 'monitoring-token-1'), ['read']);
    assert.deepEqual(rolesOf(file, 'anns-own-token-22'), ['operate', 'read']);
    assert.deepEqual(rolesOf(file, 'bobs-own-token-333'), ['content', 'operate', 'read']);
    assert.deepEqual(rolesOf(file, 'legals-own-token-4'), ['content', 'read']);
    assert.equal(ownerOf(readTokens(file), 'bobs-own-token-333')?.name, 'bob');
    for (const wrong of ['', 'bobs-own-token-33', 'bobs-own-token-3333', 'bob']) assert.equal(ownerOf(readTokens(file), wrong), undefined, wrong);
  });

  test('may hold a hash in place of a token, which is no token itself', () => {
    const file = tokensFile(`ann read ${hashOf(TOKEN)}`, `ann operate ${TOKEN}-new`);
    assert.deepEqual(rolesOf(file, TOKEN), ['read']);
    assert.deepEqual(rolesOf(file, `${TOKEN}-new`), ['operate', 'read'], 'two of one name: one is being changed');
    assert.equal(ownerOf(readTokens(file), hashOf(TOKEN)), undefined);
  });

  test('is refused by the line that is wrong, and nothing of a token is told', () => {
    for (const line of ['ann', 'ann read', `ann admin ${TOKEN}`, `ann read,  ${TOKEN}`, 'ann read short', `ann read ${TOKEN} more`, `ann read sha256:${TOKEN}`, `an:n read ${TOKEN}`, `ann read ${TOKEN}ü`]) {
      assert.throws(() => readTokens(tokensFile('# a comment', line)), (error: Error) => /^line 2 of '.*tokens' is no NAME ROLE TOKEN/.test(error.message) && !error.message.includes(TOKEN), line);
    }
    assert.throws(() => readTokens(tokensFile('# nobody')), /has no token$/);
  });

  test('is refused when others may read or write it', () => {
    const file = tokensFile();
    chmodSync(file, 0o604);
    assert.throws(() => readTokens(file), /everybody on this machine may read or write/);
    chmodSync(file, 0o640);
    assert.equal(readTokens(file).length, 1);
  });
});
