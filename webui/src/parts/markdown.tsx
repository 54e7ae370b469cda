/** Renders notes as Markdown. Raw HTML stays text, and links lead only to pages and mail addresses. */

import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

import "../code/code.css";
import "./markdown.css";

const SAFE = /^(https?:\/\/|mailto:|\/(?!\/)|#)/;

/** The address of a link if it is allowed, otherwise an empty string. */
export const safe = (address: string): string => (SAFE.test(address) ? address : "");

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} rel="noreferrer">
        {children}
      </a>
    ) : (
      children
    ),
  // An image from elsewhere would reveal when and where the note is read.
  img: ({ src, alt }) => (
    <a href={typeof src === "string" ? src : undefined} rel="noreferrer">
      {alt || "picture"}
    </a>
  ),
  // Only the page itself has top-level headings.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  pre: ({ children }) => (
    <pre tabIndex={0} className="code">
      {children}
    </pre>
  ),
  table: ({ children }) => (
    <div className="tw">
      <table className="pairs">{children}</table>
    </div>
  ),
};

export const Markdown = ({ text }: { text: string }) => (
  <div className="prose markdown">
    <ReactMarkdown remarkPlugins={[remarkGfm]} urlTransform={safe} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  </div>
);
