/** Notes as people write them. Raw HTML in them stays text, and links lead to pages and mail alone. */

import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

import "../code/code.css";
import "./markdown.css";

const SAFE = /^(https?:\/\/|mailto:|\/(?!\/)|#)/;

/** Where a link may lead. */
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
  // Pictures from elsewhere would tell where they are looked at.
  img: ({ src, alt }) => (
    <a href={typeof src === "string" ? src : undefined} rel="noreferrer">
      {alt || "picture"}
    </a>
  ),
  // Headings of a page are the page's own.
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
