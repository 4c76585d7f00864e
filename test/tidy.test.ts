/**
 * The rules of the house that a compiler does not know: floors, bans, headers, encoders, and documents that
 * name files. Each test lists every offender, so that one run is enough to mend them all.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Who may import whom: only what has the same number or a lower one. */
const FLOORS: readonly (readonly [folder: string, floor: number])[] = [
  ['src/base/', 0],
  ['src/platform/', 1],
  ['src/config/keys/', 1],
  ['src/admin-api/', 1],
  ['src/observability/', 2],
  ['src/protocol/', 3],
  ['src/smtp/', 3],
  ['src/kvs/core/', 4],
  ['src/register/', 4],
  ['src/recovery/', 5],
  ['src/gateway/', 6],
  ['src/kvs/', 6],
  ['src/load/', 6],
  ['src/sink/', 6],
  ['src/cli/', 7],
  ['src/config/', 7],
  ['src/console/', 7],
  ['src/bin/', 8],
];

/** Parts that meet only on the wire. */
const STRANGERS: readonly (readonly [from: string, to: string])[] = [
  ['src/gateway/', 'src/kvs/'],
  ['src/kvs/', 'src/gateway/'],
  ['src/recovery/', 'src/kvs/'],
];

/**
 * The rooms of a gateway, from the one that puts all together down to the words that they share: what a room uses stands
 * below it, or in it. Types may be named upwards, as those of ports are.
 */
const ROOMS: readonly string[] = [
  'daemon/', 'admin/', 'explain/', 'look/', 'orders/', 'dkim/node/', 'inbound/', 'outbound/', 'returned/', 'bounce/', 'local/',
  'ownership/', 'recovered/', 'queue/', 'mirror/', 'dkim/', 'mail-types.ts',
].map((name) => `src/gateway/${name}`);

const FUNCTION_LINES_MAX = 60;

interface Source {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
}

function listFiles(folder: string): string[] {
  const full = join(PROJECT, folder);
  if (!existsSync(full)) return [];
  const names = readdirSync(full, { recursive: true, encoding: 'utf8' }).filter((name) => !name.split('/').includes('node_modules'));
  return names.map((name) => posix.join(folder, name)).sort();
}

function parse(path: string): Source {
  const text = readFileSync(join(PROJECT, path), 'utf8');
  return { path, text, tree: ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true) };
}

const sources = ['src', 'test', 'bench'].flatMap(listFiles).filter((path) => path.endsWith('.ts')).map(parse);
const ours = sources.filter((source) => !source.path.startsWith('test/'));
const pure = sources.filter((source) => isPure(source.path));

function isPure(path: string): boolean {
  const config = ts.readConfigFile(join(PROJECT, 'tsconfig.pure.json'), (name) => readFileSync(name, 'utf8'));
  const patterns = (config.config as { include: readonly string[] }).include;
  return patterns.some((pattern) => matches(path, pattern));
}

/** 'a/**\/*.ts' = anywhere below a; 'a/*.ts' = in a; 'a/b.ts' = that file. */
function matches(path: string, pattern: string): boolean {
  if (!pattern.includes('*')) return path === pattern;
  const deep = pattern.endsWith('/**/*.ts');
  const folder = pattern.slice(0, pattern.length - (deep ? '**/*.ts' : '*.ts').length);
  return path.startsWith(folder) && (deep || !path.slice(folder.length).includes('/'));
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

function place(source: Source, node: ts.Node): string {
  return `${source.path}:${source.tree.getLineAndCharacterOfPosition(node.getStart(source.tree)).line + 1}`;
}

/** Places of all nodes of `among` that `wrong` says something about. */
function offenders(among: readonly Source[], wrong: (node: ts.Node, source: Source) => string): string[] {
  const found: string[] = [];
  for (const source of among) {
    walk(source.tree, (node) => {
      const why = wrong(node, source);
      if (why !== '') found.push(`${place(source, node)} ${why}`);
    });
  }
  return found;
}

/** The modules that a file names, with the project path of those that are ours. */
function importsOf(source: Source): { node: ts.Node; name: string; path: string; typeOnly: boolean }[] {
  const imports: { node: ts.Node; name: string; path: string; typeOnly: boolean }[] = [];
  for (const node of source.tree.statements) {
    if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) continue;
    if (node.moduleSpecifier === undefined || !ts.isStringLiteral(node.moduleSpecifier)) continue;
    const name = node.moduleSpecifier.text;
    const path = name.startsWith('.') ? posix.join(posix.dirname(source.path), name).replace(/\.js$/, '.ts') : '';
    const typeOnly = ts.isImportDeclaration(node) ? node.importClause?.isTypeOnly === true : node.isTypeOnly;
    imports.push({ node, name, path, typeOnly });
  }
  return imports;
}

function floorOf(path: string): number | undefined {
  return FLOORS.find(([folder]) => path.startsWith(folder))?.[1];
}

function expectNone(found: readonly string[]): void {
  assert.equal(found.length, 0, `\n${found.join('\n')}\n`);
}

test('every source file stands on a floor', () => {
  expectNone(sources.filter((source) => source.path.startsWith('src/') && floorOf(source.path) === undefined).map((source) => source.path));
});

test('imports go downward only', () => {
  const found: string[] = [];
  for (const source of sources) {
    const own = floorOf(source.path);
    if (own === undefined) continue;
    for (const { node, path } of importsOf(source)) {
      if (path === '') continue;
      const other = floorOf(path);
      if (other === undefined || other > own) found.push(`${place(source, node)} imports ${path}`);
    }
  }
  expectNone(found);
});

test('rooms of a gateway use what stands below them', () => {
  const roomOf = (path: string): number => ROOMS.findIndex((room) => path.startsWith(room));
  const found: string[] = [];
  for (const source of sources.filter(({ path }) => path.startsWith('src/gateway/'))) {
    const own = roomOf(source.path);
    if (own < 0) found.push(`${source.path} stands in no room`);
    for (const { node, path, typeOnly } of importsOf(source)) {
      if (!typeOnly && path.startsWith('src/gateway/') && roomOf(path) < own) found.push(`${place(source, node)} uses ${path}`);
    }
  }
  expectNone(found);
});

test('parts that meet only on the wire do not import one another', () => {
  const found: string[] = [];
  for (const source of sources) {
    for (const { node, path } of importsOf(source)) {
      if (STRANGERS.some(([from, to]) => source.path.startsWith(from) && path.startsWith(to))) found.push(`${place(source, node)} imports ${path}`);
    }
  }
  expectNone(found);
});

test('imports make no cycles', () => {
  const edges = new Map(sources.map((source) => [source.path, importsOf(source).filter((each) => !each.typeOnly).map((each) => each.path)]));
  const done = new Set<string>();
  const found: string[] = [];
  const follow = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
    if (trail.includes(path) || done.has(path)) return;
    for (const next of edges.get(path) ?? []) follow(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) follow(path, []);
  expectNone(found);
});

test('pure floors know no clock, no chance and nothing of Node', () => {
  const found = offenders(pure, (node) => {
    if (ts.isIdentifier(node) && node.text === 'Date' && !ts.isPropertyAssignment(node.parent)) return 'uses Date';
    if (ts.isPropertyAccessExpression(node) && node.getText() === 'Math.random') return 'uses Math.random';
    return '';
  });
  for (const source of pure) {
    for (const { node, name } of importsOf(source)) if (name.startsWith('node:')) found.push(`${place(source, node)} imports ${name}`);
  }
  expectNone(found);
});

test('folders are made by makeFolder only: Node\'s own recursive mkdir may never end', () => {
  const makers = ours.filter(({ path }) => path.startsWith('src/') && path !== 'src/platform/node/make-folder.ts');
  expectNone(offenders(makers, (node) => {
    if (!ts.isCallExpression(node) || !/(^|\.)mkdir(Sync)?$/.test(node.expression.getText())) return '';
    return node.arguments.some((argument) => /\brecursive\b/.test(argument.getText())) ? node.getText() : '';
  }));
});

test('files open with a comment that says what they are for', () => {
  expectNone(ours.filter((source) => !/^(#!.*\n)?\/\*\*(\n \*)? \S/.test(source.text)).map((source) => source.path));
});

test(`functions have at most ${FUNCTION_LINES_MAX} lines`, () => {
  expectNone(offenders(ours, (node, source) => {
    if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return '';
    const line = (at: number): number => source.tree.getLineAndCharacterOfPosition(at).line;
    const lines = line(node.getEnd()) - line(node.getStart(source.tree)) + 1;
    return lines > FUNCTION_LINES_MAX ? `has ${lines} lines` : '';
  }));
});

/** Signs of tables and code that are no words do not count. */
for (const [document, most] of [['README.md', 1200], ['docs/GUARANTEES.md', 2000]] as const) {
  test(`${document} has at most ${String(most)} words`, () => {
    const words = readFileSync(join(PROJECT, document), 'utf8').split(/\s+/).filter((word) => /[A-Za-z0-9]/.test(word));
    assert.ok(words.length <= most, `it has ${String(words.length)}`);
  });
}

/** Comments of a file that have a line to themselves, each with its first line and what follows it. */
function commentsOf({ text }: Source): { line: number; text: string; after: string }[] {
  const found: { line: number; text: string; after: string }[] = [];
  for (const { 0: comment, index } of text.matchAll(/^[ \t]*(?:\/\*[\s\S]*?\*\/|\/\/.*)/gm)) {
    const end = index + comment.length;
    found.push({ line: text.slice(0, index).split('\n').length, text: comment, after: text.slice(end, end + 100) });
  }
  return found;
}

test('files that a comment names exist', () => {
  const paths = sources.map(({ path }) => path);
  const found: string[] = [];
  for (const source of ours) {
    for (const { line, text } of commentsOf(source)) {
      for (const [, name = ''] of text.matchAll(/(?<![\w'"/.*-])((?:[a-z][\w-]*\/)*[a-z][\w-]*\.ts)\b/g)) {
        if (!paths.some((path) => path === name || path.endsWith(`/${name}`))) found.push(`${source.path}:${line} names ${name}`);
      }
    }
  }
  expectNone(found);
});

test('a comment says what follows it, not another comment', () => {
  const wrong = (source: Source): string[] => commentsOf(source).filter(({ text, after }) => text.endsWith('*/') && /^[ \t]*\n[ \t]*\/\*\*/.test(after))
    .map(({ line }) => `${source.path}:${line} is followed by another comment: join the two, or put one where it belongs`);
  expectNone(ours.flatMap(wrong));
});

const COLUMNS_MAX = 110;

test(`lines of src have at most ${COLUMNS_MAX} columns`, () => {
  const found: string[] = [];
  for (const { path, text } of ours) {
    if (!path.startsWith('src/')) continue;
    for (const [index, line] of text.split('\n').entries()) {
      if (line.length > COLUMNS_MAX) found.push(`${path}:${index + 1} has ${line.length}`);
    }
  }
  expectNone(found);
});

/** Where bytes are made with MessagePack: the messages, and the values that are mirrored or written to files. */
const PACKING_HOMES: readonly string[] = [
  'src/protocol/',
  'src/gateway/queue/envelope.ts',
  'src/gateway/queue/entry-texts.ts',
];

/** Name of the function declaration around a node, '' for none. */
function functionAround(node: ts.Node): string {
  for (let at = node.parent; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isFunctionDeclaration(at)) return at.name?.text ?? '';
    if (ts.isMethodDeclaration(at) || ts.isConstructorDeclaration(at) || ts.isGetAccessor(at)) return '';
  }
  return '';
}

test('bytes are packed by named encoders only, beside their decoders', () => {
  const packing = ours.filter(({ path }) => path.startsWith('src/') && path !== 'src/platform/node/packer.ts');
  expectNone(offenders(packing, (node, source) => {
    const isPacking = ts.isPropertyAccessExpression(node) && node.name.text === 'pack';
    if (!isPacking || /^encode[A-Z]/.test(functionAround(node)) && PACKING_HOMES.some((home) => source.path.startsWith(home))) return '';
    return `${node.getText()} outside an encode function of a file that may pack`;
  }));
});

test('the encoder and the decoder of each message are used by production', () => {
  const production = ours.filter(({ path }) => path.startsWith('src/'));
  const taken = new Set(production.flatMap((source) => [...takenBy(source)]));
  const found: string[] = [];
  for (const source of production.filter(({ path }) => path.startsWith('src/protocol/messages/'))) {
    for (const [name, node] of exportedValues(source)) {
      if (/^(en|de)code[A-Z]/.test(name) && !taken.has(`${source.path} ${name}`)) found.push(`${place(source, node)} ${name} is not used`);
    }
  }
  expectNone(found);
});

test('no two classes share a name, nor a class and a type', () => {
  const names = new Map<string, string[]>();
  const classes = new Set<string>();
  for (const source of ours.filter(({ path }) => path.startsWith('src/'))) {
    walk(source.tree, (node) => {
      const isClass = ts.isClassDeclaration(node);
      if (!isClass && !ts.isInterfaceDeclaration(node) && !ts.isTypeAliasDeclaration(node)) return;
      const name = node.name?.text ?? '';
      if (isClass) classes.add(name);
      names.set(name, [...(names.get(name) ?? []), place(source, node)]);
    });
  }
  expectNone([...names].filter(([name, places]) => classes.has(name) && places.length > 1).map(([name, places]) => `${name}: ${places.join(', ')}`));
});

/** Exported functions, classes and constants of a file, by name. */
function exportedValues(source: Source): Map<string, ts.Node> {
  const values = new Map<string, ts.Node>();
  for (const node of source.tree.statements) {
    if (!isExported(node)) continue;
    if ((ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) && node.name !== undefined) values.set(node.name.text, node);
    if (ts.isVariableStatement(node)) for (const { name } of node.declarationList.declarations) if (ts.isIdentifier(name)) values.set(name.text, node);
  }
  return values;
}

/** "path name" of all that a file takes from others: named imports, members of namespaces, modules loaded at run time. */
function takenBy(source: Source): Set<string> {
  const taken = new Set<string>();
  const modules = new Map<string, string>();
  for (const { node, path } of importsOf(source)) {
    const bindings = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined;
    if (bindings !== undefined && ts.isNamedImports(bindings)) for (const { name, propertyName } of bindings.elements) taken.add(`${path} ${(propertyName ?? name).text}`);
    if (bindings !== undefined && ts.isNamespaceImport(bindings)) modules.set(bindings.name.text, path);
  }
  walk(source.tree, (node) => {
    if (!ts.isPropertyAccessExpression(node)) return;
    const loaded = /^\(await import\('([^']+)\.js'\)\)$/.exec(node.expression.getText())?.[1];
    const path = loaded === undefined ? modules.get(node.expression.getText()) : `${posix.join(posix.dirname(source.path), loaded)}.ts`;
    if (path !== undefined) taken.add(`${path} ${node.name.text}`);
  });
  return taken;
}

/** Production code that only tests run: the register of the simulator. */
const FOR_TESTS = 'src/register/simulated/';

test('what is exported is used: by production, or by its own file and a test', () => {
  const byOthers = new Set(ours.flatMap((source) => [...takenBy(source)]));
  const byTests = new Set(sources.filter(({ path }) => path.startsWith('test/')).flatMap((source) => [...takenBy(source)]));
  const found: string[] = [];
  for (const source of ours.filter(({ path }) => path.startsWith('src/') && !path.startsWith('src/bin/'))) {
    for (const [name, node] of exportedValues(source)) {
      const key = `${source.path} ${name}`;
      if (byOthers.has(key)) continue;
      let mentions = 0;
      walk(source.tree, (one) => { if (ts.isIdentifier(one) && one.text === name) mentions += 1; });
      const isForTests = source.path.startsWith(FOR_TESTS);
      if (!byTests.has(key) && !isForTests) found.push(`${place(source, node)} ${name} is exported for nobody`);
      else if (mentions < 2 && !isForTests) found.push(`${place(source, node)} ${name} is used by tests alone`);
    }
  }
  expectNone(found);
});

function isExported(node: ts.Node): boolean {
  return ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
}

test('nothing is exported by default or through a barrel', () => {
  expectNone(offenders(sources, (node) => {
    if (ts.isExportAssignment(node) || node.kind === ts.SyntaxKind.DefaultKeyword && ts.isModifier(node)) return 'default export';
    return ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined ? 'exports what another file has' : '';
  }));
});

test('no type is any', () => {
  expectNone(offenders(sources, (node) => (node.kind === ts.SyntaxKind.AnyKeyword ? 'any' : '')));
});

test('no test is skipped, postponed or alone', () => {
  const tests = sources.filter((source) => source.path.endsWith('.test.ts'));
  expectNone(offenders(tests, (node) => {
    if (!ts.isPropertyAccessExpression(node) || !ts.isIdentifier(node.expression)) return '';
    return /^(test|describe|it|t|context)$/.test(node.expression.text) && /^(skip|todo|only)$/.test(node.name.text) ? node.getText() : '';
  }));
});

/** Texts that must not stand in any file of the project; written so that this file does not hold them. */
const BANNED_TEXTS: readonly (readonly [why: string, pattern: RegExp])[] = [
  ['unfinished', new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`)],
  ['path of one machine', new RegExp(`(^|[\\s"'\`(=])/(${['wo' + 'rk', 'ro' + 'ot', 'ho' + 'me', 'Us' + 'ers'].join('|')})/`)],
];

test('no file holds unfinished work or paths of one machine', () => {
  const folders = ['src', 'test', 'bench', 'docs', 'configs', '.ci'].flatMap(listFiles);
  const top = readdirSync(PROJECT).filter((name) => /\.(md|json|js)$/.test(name) && name !== 'package-lock.json');
  const found: string[] = [];
  for (const path of [...folders, ...top]) {
    if (!/\.(ts|js|json|md|ya?ml|sh|py|txt)$|\/run$/.test(path) || path.startsWith('bench/results/')) continue;
    for (const [index, line] of readFileSync(join(PROJECT, path), 'utf8').split('\n').entries()) {
      for (const [why, pattern] of BANNED_TEXTS) if (pattern.test(line)) found.push(`${path}:${index + 1} ${why}: ${line.trim()}`);
    }
  }
  expectNone(found);
});

/** What a call logs: the text of its event, '?' when that is worked out only as it runs, undefined when it logs nothing. */
function eventOf(node: ts.Node): string | undefined {
  if (!ts.isCallExpression(node)) return undefined;
  const { expression } = node;
  if (!ts.isPropertyAccessExpression(expression) && !ts.isElementAccessExpression(expression)) return undefined;
  if (!/(^|\.)#?log$/.test(expression.expression.getText())) return undefined;
  if (ts.isPropertyAccessExpression(expression) && !/^(debug|info|warn|error)$/.test(expression.name.text)) return undefined;
  const [event] = node.arguments;
  return event !== undefined && ts.isStringLiteral(event) ? event.text : '?';
}

const LOG_PAGE = readFileSync(join(PROJECT, 'docs/LOG.md'), 'utf8');
const REASONS = LOG_PAGE.slice(LOG_PAGE.indexOf('## Reasons of refusals'), LOG_PAGE.indexOf('## Events'));

test('every reason of a refusal stands in docs/LOG.md, and none besides', () => {
  const replies = readFileSync(join(PROJECT, 'src/gateway/inbound/session/replies.ts'), 'utf8');
  const known = [...replies.matchAll(/refusal\(\s*'([a-z0-9-]+)'/g)].map(([, reason]) => reason);
  const told = [...REASONS.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell]) => [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, reason]) => reason));
  assert.deepEqual([...new Set(told)].sort(), [...new Set(known)].sort());
  assert.ok(known.length > 50);
});

test('every event that is logged stands in docs/LOG.md, and none besides', () => {
  const found: string[] = [];
  const table = LOG_PAGE.replace(REASONS, '').split('\n').filter((line) => line.startsWith('| `')).map((line) => line.split('|')[1] ?? '');
  const told = new Set(table.flatMap((cell) => [...cell.matchAll(/`([\w-]+)`/g)].map(([, name]) => name ?? '')));
  const logged = new Set<string>();
  for (const source of ours.filter(({ path }) => path.startsWith('src/'))) {
    if (source.path === 'src/observability/mail-log.ts') for (const [, name] of source.text.matchAll(/this\.#event\.(\w+)/g)) logged.add(name ?? '');
    walk(source.tree, (node) => {
      // The line about lost lines is made by hand: the log itself has no room for it.
      const byHand = /^event: '(\w+)'$/.exec(node.getText(source.tree))?.[1];
      const event = byHand ?? eventOf(node);
      if (event === undefined) return;
      logged.add(event);
      if (!told.has(event)) found.push(`${place(source, node)} logs '${event}'`);
    });
  }
  for (const name of told) if (!logged.has(name)) found.push(`docs/LOG.md names '${name}', which nothing logs`);
  expectNone(found);
});

/** Scanners, whose state is a place in a text and changes with each byte; and one state that is a description. */
const WITHOUT_TRANSITION = ['src/gateway/inbound/content/content-scan.ts', 'src/sink/dialog.ts', 'src/register/client/register-client.ts'];

test('a state has one writer beside its first value: a transition that knows all arrows', () => {
  const found: string[] = [];
  for (const { path, text } of ours) {
    if (!path.startsWith('src/') || WITHOUT_TRANSITION.includes(path)) continue;
    const writes = text.match(/\.#?(state|step|phase|fill) = /g) ?? [];
    if (writes.length > 1) found.push(`${path} writes a state in ${writes.length} places`);
  }
  expectNone(found);
});

test('a line of the log names a message as clients and orders do', () => {
  expectNone(offenders(ours.filter(({ path }) => path.startsWith('src/')), (node) => {
    if (!ts.isPropertyAssignment(node) || node.name.getText() !== 'queue_id' || !ts.isObjectLiteralExpression(node.parent)) return '';
    if (eventOf(node.parent.parent) === undefined) return '';
    return /^formatMessageId\(/.test(node.initializer.getText()) ? '' : `logs ${node.getText()}, and no formatMessageId() of it`;
  }));
});

for (const document of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...listFiles('docs').filter((path) => path.endsWith('.md'))]) {
  test(`every file that ${document} names exists`, () => {
    // Commands name compiled files; their sources stand for them.
    const text = readFileSync(join(PROJECT, document), 'utf8').replace(/\bdist\/(\S+)\.js\b/g, '$1.ts');
    const named = text.match(/\b(?:src|test|bench|docs|configs)\/[\w./*-]*[\w/*]/g) ?? [];
    const missing = named.filter((path) => !existsSync(join(PROJECT, path.replace(/\/?\*.*$/, ''))));
    expectNone([...new Set(missing)]);
  });
}

/** Of the tests in a file, and of tables of tests, one a line; of a dialog file those of its dialogs. */
function titlesIn(path: string): string {
  if (path.endsWith('.txt') && existsSync(join(PROJECT, path))) {
    return readFileSync(join(PROJECT, path), 'utf8').split('\n').filter((line) => line.startsWith('== ')).join('\n');
  }
  const tree = sources.find((source) => source.path === path)?.tree;
  if (tree === undefined) return '';
  const titles: string[] = [];
  walk(tree, (node) => {
    const isTest = ts.isCallExpression(node) && /^(?:test|describe)$/.test(node.expression.getText(tree));
    const title = isTest ? node.arguments[0] : ts.isArrayLiteralExpression(node) ? node.elements[0] : undefined;
    if (title !== undefined && ts.isStringLiteralLike(title)) titles.push(title.text);
    else if (isTest && title !== undefined) titles.push(title.getText(tree));
  });
  return titles.join('\n');
}

test('every test that docs/RFC.md names exists, and every row names one', () => {
  const found: string[] = [];
  for (const line of readFileSync(join(PROJECT, 'docs/RFC.md'), 'utf8').split('\n')) {
    const cells = line.split(' | ');
    if (!line.startsWith('| ') || line.startsWith('| clause') || line.startsWith('| RFC |') || line.startsWith('| what |')) continue;
    const named = [...(cells.at(-1) ?? '').matchAll(/`(test\/[^`]+)`: ([^;|]+?)(?:;| \|)/g)];
    if (named.length === 0) found.push(`${cells[0] ?? ''}: no test`);
    for (const [, path = '', title = ''] of named) {
      if (!titlesIn(path).includes(title)) found.push(`${path} has no test '${title}'`);
    }
  }
  expectNone(found);
});

test('every result in docs/bench is named in a document', () => {
  const documents = ['README.md', ...listFiles('docs').filter((path) => path.endsWith('.md'))].map((path) => readFileSync(join(PROJECT, path), 'utf8')).join('\n');
  expectNone(listFiles('docs/bench').filter((path) => !documents.includes(path)));
});
