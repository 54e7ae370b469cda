/** A file, line by line; long lines wrap. */

import { useEffect, useMemo, useRef } from "react";

import { colouredLines } from "./colours";

interface Props {
  text: string;
  language: string;
  label: string;
  /** The line to highlight, from 1. */
  at?: number;
}

export function Shown({ text, language, label, at }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => colouredLines(text.replace(/\n$/, ""), language), [text, language]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text has the line at another position
  useEffect(() => {
    const here = box.current?.querySelector<HTMLElement>(".here");
    if (here) box.current!.scrollTop = here.offsetTop - box.current!.offsetTop - box.current!.clientHeight / 3;
  }, [at, text]);
  return (
    <div className="ftext source" ref={box} tabIndex={0} role="region" aria-label={label}>
      {lines.map((line, number) => (
        <div key={number} className={`ln ${number + 1 === at ? "here" : ""}`}>
          <span>{line}</span>
        </div>
      ))}
    </div>
  );
}
