import { QueryClientProvider } from "@tanstack/react-query";
import { Suspense } from "react";
import { BrowserRouter, Navigate, Route, Routes } from "react-router";

import { queryClient } from "./api/queries";
import { Banner } from "./parts/banner";
import { Login, PAGES } from "./places";
import { Layout } from "./shell/layout";

const client = queryClient();

export const App = () => (
  <QueryClientProvider client={client}>
    {/* The address holds what the user types and chooses, so a field must show a change at once. */}
    <BrowserRouter basename="/det" useTransitions={false}>
      <Banner />
      <Routes>
        <Route
          path="/login"
          element={
            <Suspense>
              <Login />
            </Suspense>
          }
        />
        <Route element={<Layout />}>
          <Route path="/" element={<Navigate to="/dashboard" replace />} />
          {PAGES.flatMap(({ paths, component: Page }) => paths.map((path) => <Route key={path} path={path} element={<Page />} />))}
        </Route>
      </Routes>
    </BrowserRouter>
  </QueryClientProvider>
);
