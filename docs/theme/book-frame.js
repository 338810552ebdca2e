'use strict';

// What mdBook's own scripts expect of the page around them, and the menu of narrow windows.

const path_to_root = document.documentElement.dataset.root;
window.path_to_searchindex_js = document.documentElement.dataset.index;

// The search leaves keys alone that are typed elsewhere.
function mdbook_something_else_has_focus(event) {
    return event.target.matches('input, select, textarea');
}

document.addEventListener('DOMContentLoaded', () => {
    const menu = document.getElementById('book-menu');
    const sidebar = document.getElementById('mdbook-sidebar');
    menu.addEventListener('click', () => {
        const open = document.body.classList.toggle('menu-open');
        menu.setAttribute('aria-expanded', String(open));
        const link = sidebar.querySelector('a.active') || sidebar.querySelector('a');
        if (open && link) {
            link.focus();
        }
    });
    document.addEventListener('keydown', event => {
        if (event.key === 'Escape' && document.body.classList.contains('menu-open')) {
            menu.click();
            menu.focus();
        }
    });
});
