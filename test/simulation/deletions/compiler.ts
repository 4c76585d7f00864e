/**
 * The compiler of a try of deletions: does a changed file compile within the project, and what would the
 * build have of it? It reads the project once; a build for each try would take minutes.
 */
import { join } from 'node:path';
import ts from 'typescript';

/** The compiler with the project's options; one file at a time has another text than on disk. */
export class Compiler {
  readonly #project: string;
  readonly #emit: ts.CompilerOptions;
  readonly #service: ts.LanguageService;
  #file = '';
  #text = '';
  #version = 0;

  /** `project`: the folder with tsconfig.json. */
  constructor(project: string) {
    this.#project = project;
    const { config } = ts.readConfigFile(join(project, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
      readonly config: unknown;
    };
    const parsed = ts.parseJsonConfigFileContent(config, ts.sys, project);
    // NodeNext asks the package what a file is; a text alone stands in none and would become CommonJS.
    this.#emit = { ...parsed.options, module: ts.ModuleKind.ESNext, sourceMap: false };
    this.#service = ts.createLanguageService({
      getCompilationSettings: () => parsed.options,
      getScriptFileNames: () => parsed.fileNames.filter((name) => name.startsWith(join(project, 'src'))),
      getScriptVersion: (name) => (name === this.#file ? String(this.#version) : '0'),
      getScriptSnapshot: (name) => {
        const text = name === this.#file ? this.#text : ts.sys.readFile(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => project,
      getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
      fileExists: (name) => ts.sys.fileExists(name),
      readFile: (name) => ts.sys.readFile(name),
    });
  }

  /** The first error of the file with this text, or '' if it compiles. */
  errorIn(file: string, text: string): string {
    this.#file = join(this.#project, file);
    this.#text = text;
    this.#version += 1;
    const [first] = this.#service.getSemanticDiagnostics(this.#file);
    return first === undefined ? '' : ts.flattenDiagnosticMessageText(first.messageText, ' ');
  }

  /** What the build would have of this text. */
  emitted(text: string): string {
    return ts.transpileModule(text, { compilerOptions: this.#emit }).outputText;
  }
}
