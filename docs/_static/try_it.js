/* The saved explorers of the page "Try it" take the theme of the site. */
"use strict";

(() => {
  const follow = () => {
    for (const { contentDocument: page } of document.querySelectorAll("iframe.try")) {
      if (page) page.documentElement.style.colorScheme = document.documentElement.dataset.theme;
    }
  };
  new MutationObserver(follow).observe(document.documentElement, { attributes: true });
  addEventListener("load", follow);
})();
