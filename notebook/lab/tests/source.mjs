// Loads a module of the extension that does not import JupyterLab.

import { readFileSync } from 'node:fs';
import ts from 'typescript';

export async function source(name) {
  const text = readFileSync(new URL(`../src/${name}.ts`, import.meta.url), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2020 };
  const code = ts.transpileModule(text, { compilerOptions }).outputText;
  return import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
}
