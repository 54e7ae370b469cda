import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import "./tokens.css";
import "./theme.css";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
