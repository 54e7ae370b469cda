import type { ReactNode } from "react";

// Comments, texts, numbers and words that most languages of training code have in common.
const TOKEN =
  /(#[^\n]*|\/\/[^\n]*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(\d[\w.]*)\b|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|function|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|True|False|None|true|false|null|const|let|export)\b/g;
const CLASSES = ["tok-c", "tok-s", "tok-n", "tok-k"];
const LARGEST = 200_000;

/** Text with light colours; what is very long stays plain. */
export function highlighted(text: string): ReactNode {
  if (text.length > LARGEST) return text;
  const found: ReactNode[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    found.push(text.slice(at, match.index));
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    found.push(
      <span key={match.index} className={CLASSES[kind]}>
        {match[0]}
      </span>,
    );
    at = match.index + match[0].length;
  }
  found.push(text.slice(at));
  return found;
}
