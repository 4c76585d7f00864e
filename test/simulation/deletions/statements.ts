/**
 * Which statements may be deleted, and the text without one. A statement is drawn if its deletion takes a
 * step away: an expression (assignments and calls), a return of nothing, or an if with all that hangs on it,
 * in a function's body.
 *
 * Left out: declarations, imports and returned values, which rarely compile without; loops and try, which
 * hold statements that are drawn themselves; `invariant(...)`, which does nothing while the code is right;
 * and calls that only log, trace or count, which nothing promises.
 */
import ts from 'typescript';

export interface Statement {
  /** From the root of the project. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Offsets in the file's text. */
  readonly start: number;
  readonly end: number;
  /** On one line. */
  readonly text: string;
}

/** A name in the path of what is called or counted up: `this.#ports.log.warn`, `this.counters.tails`. */
const TELLS_ONLY = /(^|[.#])(invariant|log|trace|metrics|counters?)\b/i;

export function statementsOf(file: string, text: string): Statement[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const found: Statement[] = [];
  const walk = (node: ts.Node, isInFunction: boolean): void => {
    if (isInFunction && isDrawn(node)) {
      const start = node.getStart(source);
      const line = source.getLineAndCharacterOfPosition(start).line + 1;
      found.push({ file, line, start, end: node.end, text: node.getText(source).replace(/\s+/g, ' ') });
    }
    ts.forEachChild(node, (child) => { walk(child, isInFunction || ts.isFunctionLike(node)); });
  };
  walk(source, false);
  return found;
}

/** An empty block takes its place, so that an `else` or a loop keeps its form. */
export function withoutStatement(text: string, { start, end }: Statement): string {
  return `${text.slice(0, start)}{}${text.slice(end)}`;
}

function isDrawn(node: ts.Node): boolean {
  if (ts.isIfStatement(node)) return true;
  if (ts.isReturnStatement(node)) return node.expression === undefined;
  return ts.isExpressionStatement(node) && !TELLS_ONLY.test(whatItNames(node.expression));
}

/** The path of a call, or of what is assigned or counted up, without arguments and values. */
function whatItNames(expression: ts.Expression): string {
  if (ts.isCallExpression(expression)) return whatItNames(expression.expression);
  if (ts.isBinaryExpression(expression)) return whatItNames(expression.left);
  if (ts.isPostfixUnaryExpression(expression) || ts.isPrefixUnaryExpression(expression)) {
    return whatItNames(expression.operand);
  }
  return expression.getText();
}
