/** Notes as people write them: headings, lists, code, emphasis and links; everything else is text. Nothing in them is ever HTML. */

import { Fragment, type ReactNode } from "react";

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\n]+)\*|\[([^\]]+)\]\(([^)\s]+)\)/g;
const SAFE = /^(https?:\/\/|mailto:|\/(?!\/))/;

/** Where a link may lead; nowhere else than to pages and mail. */
export const safe = (address: string): string | undefined => (SAFE.test(address) ? address : undefined);

function inline(text: string): ReactNode[] {
  const found: ReactNode[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(at, match.index));
    const [whole, code, strong, soft, name, address] = match;
    const key = match.index;
    if (code) found.push(<code key={key}>{code}</code>);
    else if (strong) found.push(<strong key={key}>{strong}</strong>);
    else if (soft) found.push(<em key={key}>{soft}</em>);
    else if (safe(address!))
      found.push(
        <a key={key} href={safe(address!)} rel="noreferrer">
          {name}
        </a>,
      );
    else found.push(whole);
    at = match.index + whole.length;
  }
  found.push(text.slice(at));
  return found;
}

function block(text: string): ReactNode {
  const heading = /^(#{1,4}) (.*)$/.exec(text);
  if (heading)
    return (
      <p className="heading">
        <strong>{inline(heading[2]!)}</strong>
      </p>
    );
  const lines = text.split("\n");
  const items = lines.map((line) => /^\s*(?:[-*]|\d+\.) (.*)$/.exec(line)?.[1]);
  if (items.every((item) => item !== undefined)) {
    const List = /^\s*\d/.test(text) ? "ol" : "ul";
    return (
      <List>
        {items.map((item, at) => (
          <li key={at}>{inline(item!)}</li>
        ))}
      </List>
    );
  }
  return (
    <p>
      {lines.map((line, at) => (
        <Fragment key={at}>
          {at > 0 && <br />}
          {inline(line)}
        </Fragment>
      ))}
    </p>
  );
}

interface Part {
  code: boolean;
  text: string;
}

/** Parts of a text: fenced code, and what blank lines or headings separate. */
export function parts(text: string): Part[] {
  return text.split(/^```.*$/m).flatMap((part, at): Part[] =>
    at % 2
      ? [{ code: true, text: part.replace(/^\n|\n$/g, "") }]
      : part
          .split(/\n\s*\n|(?<=^#{1,4} .*)\n/m)
          .map((one) => one.trim())
          .filter(Boolean)
          .map((one) => ({ code: false, text: one })),
  );
}

export const Markdown = ({ text }: { text: string }) => (
  <div className="markdown">
    {parts(text).map((part, at) =>
      part.code ? (
        <pre key={at} tabIndex={0}>
          {part.text}
        </pre>
      ) : (
        <Fragment key={at}>{block(part.text)}</Fragment>
      ),
    )}
  </div>
);
